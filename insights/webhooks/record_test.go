package webhooks

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/insights/events"
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
	must(t, errOf(f.Update(t.Context(), account, disabled.ID, Change{Enabled: new(false)}, nil)))
	deleted := f.endpoint(t, account, "https://deleted.example/")
	must(t, f.Delete(t.Context(), account, deleted.ID))
	run, data := store.NewID(), []byte(`{"b":1, "a":[2]}`)
	completed, alert, theirs := store.NewID(), store.NewID(), store.NewID()
	f.recordCauses(t,
		cause(account, completed, events.RunCompleted, run, data),
		cause(account, alert, events.AlertOpened, run, data),
		cause(other, theirs, events.RunCompleted, run, data))
	// A run has one final event.
	f.recordCauses(t, cause(account, store.NewID(), events.RunCompleted, run, data), cause(account, store.NewID(), events.RunCanceled, run, data))

	var got []string
	for id, name := range names {
		all, err := Deliveries(t.Context(), f.Pool, account, id, "pending", store.Page{Limit: 10})
		must(t, err)
		for _, d := range all {
			got = append(got, name+" "+d.Type)
		}
	}
	want := map[string]bool{"completed run.completed": true, "alerts alert.opened": true, "all run.completed": true, "all alert.opened": true}
	if diff := cmp.Diff(want, setOf(got)); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries`); n != 4 {
		t.Errorf("%d deliveries", n)
	}
	for id := range names {
		if failed, err := Deliveries(t.Context(), f.Pool, account, id, "failed", store.Page{Limit: 10}); err != nil || len(failed) != 0 {
			t.Errorf("failed deliveries: %+v, %v", failed, err)
		}
	}
	if n := f.Count(t, `SELECT count(*) FROM events`); n != 3 {
		t.Errorf("%d events", n)
	}
	// An account that is due does not wait longer because of another event.
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() - interval '1 hour'`)
	f.recordCauses(t, cause(account, store.NewID(), events.RunCompleted, store.NewID(), data))
	if n := f.Count(t, `SELECT count(*) FROM webhook_queues WHERE wake_at < now() - interval '59 minutes'`); n != 1 {
		t.Error("the queue is due later than before")
	}
	e, err := events.Get(t.Context(), f.Pool, account, completed)
	if err != nil || string(e.Data) != string(data) {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := events.Get(t.Context(), f.Pool, account, theirs); err != events.ErrNotFound {
		t.Error(err)
	}
}

func setOf(texts []string) map[string]bool {
	m := make(map[string]bool)
	for _, text := range texts {
		m[text] = true
	}
	return m
}

// TestEventTime: an event and its deliveries have one time, which is not before what caused the event in the same
// transaction.
func TestEventTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	f.endpoint(t, account, "https://all.example/")
	var ordered bool
	err := pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error {
		var before time.Time
		if err := tx.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&before); err != nil {
			return err
		}
		if err := Record(t.Context(), tx, []events.Cause{cause(account, store.NewID(), events.RunCompleted, store.NewID(), []byte("{}"))}); err != nil {
			return err
		}
		return tx.QueryRow(t.Context(), `
SELECT $1 <= e.created_at AND e.created_at = d.created_at FROM events e JOIN webhook_deliveries d ON d.account_id = e.account_id AND d.event_id = e.id
WHERE e.account_id = $2`, before, account).Scan(&ordered)
	})
	if err != nil || !ordered {
		t.Errorf("the event precedes its cause, or its delivery has another time; %v", err)
	}
}

// TestRecordConcurrently: concurrent transactions about the same runs write each event once, and wait for each other.
func TestRecordConcurrently(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var accounts, runs []store.ID
	for range 5 {
		account := f.NewAccount(t)
		f.endpoint(t, account, "https://example.com/")
		accounts = append(accounts, account)
		runs = append(runs, store.NewID())
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var causes []events.Cause
			for i := range accounts {
				causes = append(causes, cause(accounts[i], store.NewID(), events.RunCompleted, runs[i], []byte(`{}`)))
			}
			if err := pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error { return Record(t.Context(), tx, causes) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
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
	must(t, errOf(f.Update(t.Context(), account, e.ID, Change{Enabled: new(false)}, nil)))
	must(t, pgx.BeginFunc(t.Context(), f.Pool, func(tx pgx.Tx) error {
		err := Record(t.Context(), tx, []events.Cause{cause(account, store.NewID(), events.RunCompleted, store.NewID(), []byte("{}"))})
		rows, queryErr := f.Pool.Query(t.Context(), `SELECT account_id FROM webhook_queues WHERE account_id = $1 FOR UPDATE SKIP LOCKED`, account)
		must(t, queryErr)
		defer rows.Close()
		if rows.Next() {
			t.Error("the queue is not locked")
		}
		return err
	}))
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
	if n, err := events.Purge(t.Context(), ahead); !isClockError(err) || n != 0 {
		t.Errorf("with a clock 40 days ahead: %d events, %v", n, err)
	}
	if n, err := events.Purge(t.Context(), f.Pool); err != nil || n != int64(len(old)) {
		t.Errorf("%d events, %v", n, err)
	}
	must(t, Purge(t.Context(), f.Pool))
	if n := f.Count(t, `SELECT count(*) FROM webhook_hosts WHERE host = 'new.example'`); n != 1 || f.Count(t, `SELECT count(*) FROM webhook_hosts`) != 1 {
		t.Error("not the old host name alone was deleted")
	}
	if n := f.Count(t, `SELECT count(*) FROM events`); n != 3 {
		t.Errorf("%d events are left", n)
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries WHERE endpoint_id = $1`, kept.ID); n != 3 {
		t.Errorf("%d deliveries are left", n)
	}
	if n := f.Count(t, `SELECT count(*) FROM webhook_deliveries`); n != 3 {
		t.Errorf("%d deliveries are left in all", n)
	}
	// A transaction that saw the endpoint may still refer to it.
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints`); n != 2 {
		t.Errorf("%d endpoints are left", n)
	}
	f.Exec(t, `UPDATE webhook_endpoints SET deleted_at = now() - interval '2 hours' WHERE id = $1`, gone.ID)
	must(t, Purge(t.Context(), f.Pool))
	if n := f.Count(t, `SELECT count(*) FROM webhook_endpoints`); n != 1 {
		t.Errorf("%d endpoints are left", n)
	}
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
	tx, err := f.Pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	must(t, errOf(tx.Exec(t.Context(), deleteDeliveries, account, e.ID, 10)))
	purged := make(chan error, 1)
	purge := func() {
		purged <- Purge(t.Context(), f.Pool)
	}
	go purge()
	storetest.UntilWaiting(t, f.Pool, "transactionid")
	must(t, tx.Commit(t.Context()))
	for n := range 2 {
		must(t, <-purged)
		if left := f.Count(t, `SELECT count(*) FROM webhook_endpoints`); left != 1-n {
			t.Errorf("purge %d: %d endpoints are left", n+1, left)
		}
		if n == 0 {
			go purge()
		}
	}
}

func isClockError(err error) bool {
	_, ok := errors.AsType[*store.ClockError](err)
	return ok
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
