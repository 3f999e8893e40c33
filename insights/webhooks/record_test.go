package webhooks

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/insights/events"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestEachEventIsWrittenOnce: events are written whether or not an endpoint subscribes to them, each once, and deliveries only for the
// enabled endpoints of the account that subscribe.
func TestEachEventIsWrittenOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account, other := f.NewAccount(t), f.NewAccount(t)
	names := map[store.ID]string{}
	for name, types := range map[string][]string{"completed": {events.RunCompleted}, "alerts": {events.AlertOpened, events.RunFailed}, "all": {All}} {
		e, _, err := f.Create(t.Context(), account, "https://"+name+".example/", "", types)
		must(t, err)
		names[e.ID] = name
	}
	disabled := f.endpoint(t, account, "https://disabled.example/")
	f.disable(t, account, disabled)
	deleted := f.endpoint(t, account, "https://deleted.example/")
	must(t, f.Delete(t.Context(), account, deleted.ID))
	run, data := store.NewID(), []byte(`{"b":1, "a":[2]}`)
	ofRun := func(account store.ID, eventType string) events.Cause {
		return events.Cause{AccountID: account, ID: store.NewID(), Type: eventType, SubjectID: run, Data: data}
	}
	completed, theirs := ofRun(account, events.RunCompleted), ofRun(other, events.RunCompleted)
	f.recordCauses(t, completed, ofRun(account, events.AlertOpened), theirs)
	f.recordCauses(t, ofRun(account, events.RunCompleted), ofRun(account, events.RunCanceled)) // a run has one final event

	got := make(map[string]int)
	for id, name := range names {
		for _, status := range []string{"pending", "failed"} {
			all, err := Deliveries(t.Context(), f.Pool, account, id, status, store.Page{Limit: 10})
			must(t, err)
			for _, d := range all {
				got[status+" "+name+" "+d.Type]++
			}
		}
	}
	want := map[string]int{"pending completed run.completed": 1, "pending alerts alert.opened": 1,
		"pending all run.completed": 1, "pending all alert.opened": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if n := f.Count(t, `SELECT count(*) FROM events`); n != 3 {
		t.Errorf("%d events", n)
	}
	// An account that is due does not wait longer because of another event.
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() - interval '1 hour'`)
	f.record(t, account, 1)
	if n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE wake_at < now() - interval '59 minutes'`); n != 1 {
		t.Error("the queue is due later than before")
	}
	e, err := events.Get(t.Context(), f.Pool, account, completed.ID)
	if err != nil || string(e.Data) != string(data) {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := events.Get(t.Context(), f.Pool, account, theirs.ID); err != events.ErrNotFound {
		t.Error(err)
	}
}

// TestEventTime: an event and its deliveries have one time, which is not before what caused the event in the same
// transaction.
func TestEventTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	f.endpoint(t, account, "https://all.example/")
	tx := f.begin(t, `CREATE TEMPORARY TABLE cause ON COMMIT DROP AS SELECT clock_timestamp() AS at`)
	must(t, Record(t.Context(), tx, []events.Cause{cause(account, events.RunCompleted)}))
	var ordered bool
	must(t, tx.QueryRow(t.Context(), `
SELECT c.at <= e.created_at AND e.created_at = d.created_at
FROM cause c, events e JOIN webhook_deliveries d ON d.account_id = e.account_id AND d.event_id = e.id`).Scan(&ordered))
	if !ordered {
		t.Error("the event precedes its cause, or its delivery has another time")
	}
}

// TestRecordConcurrently: concurrent transactions about the same runs write each event once, and wait for each other.
func TestRecordConcurrently(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var causes []events.Cause
	for range 5 {
		account := f.NewAccount(t)
		f.endpoint(t, account, "https://example.com/")
		causes = append(causes, cause(account, events.RunCompleted))
	}
	var all []<-chan error
	for range 4 {
		again := slices.Clone(causes)
		for i := range again {
			again[i].ID = store.NewID()
		}
		all = append(all, start(func() error { return f.tryToRecord(t, again...) }))
	}
	for _, recorded := range all {
		must(t, <-recorded)
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries d JOIN events e ON e.account_id = d.account_id AND e.id = d.event_id`); n != 5 {
		t.Errorf("%d deliveries", n)
	}
}

// TestQueueWhileEventIsRecorded: the queue of an account with a disabled endpoint is locked while an event is recorded,
// because the endpoint may be enabled before subscriptions are read.
func TestQueueWhileEventIsRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://a.example/")
	f.disable(t, account, e)
	tx := f.begin(t, "")
	must(t, Record(t.Context(), tx, []events.Cause{cause(account, events.RunCompleted)}))
	const free = `WITH free AS (SELECT FROM webhook_queues FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`
	if f.Count(t, free) != 0 {
		t.Error("the queue is not locked")
	}
}

func TestPurgeDeletesOldEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	kept, gone := f.endpoint(t, account, "https://kept.example/"), f.endpoint(t, account, "https://gone.example/")
	old := f.record(t, account, events.PurgeStep+10)
	f.Exec(t, `UPDATE events SET created_at = now() - interval '30 days 1 minute'`)
	f.record(t, account, 3)
	must(t, f.Delete(t.Context(), account, gone.ID))
	f.Exec(t, `INSERT INTO webhook_hosts VALUES ('old.example', now() - interval '2 hours', 1), ('new.example', now(), 1)`)
	ahead := storetest.WithClockAhead(t, f.Pool, 40*24*time.Hour)
	n, err := events.Purge(t.Context(), ahead)
	if _, refused := errors.AsType[*store.ClockError](err); !refused || n != 0 {
		t.Errorf("with a clock 40 days ahead: %d events, %v", n, err)
	}
	if n, err := events.Purge(t.Context(), f.Pool); err != nil || n != int64(len(old)) {
		t.Errorf("%d events, %v", n, err)
	}
	must(t, Purge(t.Context(), f.Pool))
	left := func(want int, from string, args ...any) {
		t.Helper()
		if n := f.Count(t, `SELECT count(*) FROM `+from, args...); n != want {
			t.Errorf("%d rows are left of %s, want %d", n, from, want)
		}
	}
	left(1, `webhook_hosts`)
	left(1, `webhook_hosts WHERE host = 'new.example'`)
	left(3, `events`)
	left(3, `webhook_deliveries`)
	left(3, `webhook_deliveries WHERE endpoint_id = $1`, kept.ID)
	left(2, `webhook_endpoints`) // a transaction that saw the endpoint may still refer to it
	f.Exec(t, `UPDATE webhook_endpoints SET deleted_at = now() - interval '2 hours' WHERE id = $1`, gone.ID)
	must(t, Purge(t.Context(), f.Pool))
	left(1, `webhook_endpoints`)
}

// TestPurgeConcurrently: an endpoint whose deliveries another purge has deleted meanwhile is left to the next purge if
// it has others.
func TestPurgeConcurrently(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	e := f.endpoint(t, account, "https://a.example/")
	f.record(t, account, events.PurgeStep+10)
	must(t, f.Delete(t.Context(), account, e.ID))
	f.Exec(t, `UPDATE webhook_endpoints SET deleted_at = now() - interval '2 hours'`)
	tx := f.begin(t, deleteDeliveries, account, e.ID, 10)
	purge := func() error { return Purge(t.Context(), f.Pool) }
	purged := start(purge)
	storetest.UntilWaiting(t, f.Pool, "transactionid")
	must(t, tx.Commit(t.Context()))
	must(t, <-purged)
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints`); n != 1 {
		t.Error("the endpoint was deleted with deliveries")
	}
	must(t, purge())
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints`); n != 0 {
		t.Error("the endpoint is left")
	}
}

// TestEraseDeletesInSteps: what an account has is deleted in steps, also what a transaction that began before adds, and nothing of
// another account.
func TestEraseDeletesInSteps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account, other := f.NewAccount(t), f.NewAccount(t)
	for _, a := range []store.ID{account, other} {
		f.endpoint(t, a, "https://a.example/")
	}
	deleted := f.endpoint(t, account, "https://deleted.example/")
	must(t, f.Delete(t.Context(), account, deleted.ID))
	f.Exec(t, `UPDATE webhook_endpoints SET deleted_at = now() - interval '1 hour' WHERE id = $1`, deleted.ID)
	f.record(t, account, events.PurgeStep+10)
	f.record(t, other, 1)
	erase := func(of func(schema.Erasure) schema.EraseFunc) map[string]int64 {
		n := make(map[string]int64)
		for _, table := range slices.Concat(events.Capability.Tables, Capability.Tables) {
			if do := of(table.Erase); do != nil {
				rows, err := do(t.Context(), f.Pool, table.Name, account)
				must(t, err)
				n[table.Name] = rows
			}
		}
		return n
	}
	for _, want := range []int64{events.PurgeStep + 10, 1} {
		if n := erase(func(e schema.Erasure) schema.EraseFunc { return e.First }); n["events"] != want {
			t.Errorf("%d events, want %d", n["events"], want)
		}
		if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints WHERE deleted_at > now() - interval '1 minute'`); n != 1 {
			t.Errorf("%d endpoints were deleted now, want 1", n)
		}
		f.record(t, account, 1)
		if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE account_id = $1`, account); n != 0 {
			t.Errorf("%d deliveries are queued", n)
		}
	}
	erase(func(e schema.Erasure) schema.EraseFunc { return e.Last })
	for _, table := range []string{"webhook_endpoints", "webhook_queues", "webhook_deliveries"} {
		if n := f.Count(t, `SELECT count(*) FROM `+table+` WHERE account_id = $1`, account); n != 0 {
			t.Errorf("%s has %d rows of the account", table, n)
		}
		if n := f.Count(t, `SELECT count(*) FROM `+table); n != 1 {
			t.Errorf("%s has %d rows of other accounts, want 1", table, n)
		}
	}
}

type backlog = webhookstest.Backlog

// TestBacklogCostsNothing: a delivery costs as much where few deliveries are pending as where many are.
func TestBacklogCostsNothing(t *testing.T) {
	t.Parallel()
	webhookstest.CostsNothing(t, []webhookstest.Case{
		{Name: "record", SQL: recordEvents, Args: func(b *backlog) []any {
			return events.Args([]events.Cause{cause(b.Account, events.RunCompleted)})
		}},
		{Name: "queues of a record", SQL: lockQueues, Args: func(b *backlog) []any { return []any{[]store.ID{b.Account}} }},
		{Name: "tests and resends", SQL: countRequested, Args: func(b *backlog) []any { return []any{b.Account, b.Due, b.Events[0]} }},
		{Name: "list", SQL: listDeliveries + ` WHERE d.account_id = $1 AND d.endpoint_id = $2 ORDER BY d.created_at DESC, d.event_id DESC LIMIT 10`, Args: func(b *backlog) []any { return []any{b.Account, b.Due} }},
		{Name: "resend", SQL: requestDelivery, Args: func(b *backlog) []any { return []any{b.Account, b.Events[0], b.Due} }},
		{Name: "types of pending deliveries", SQL: readPendingTypes, Args: func(b *backlog) []any { return []any{b.Account, b.Due, 10} }},
	}, []webhookstest.Case{
		{Name: "metrics", SQL: readBacklog, Args: func(*backlog) []any { return []any{10, 50} }},
	})
}
