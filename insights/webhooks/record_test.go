package webhooks

import (
	"errors"
	"slices"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/insights/webhooks/webhookstest"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestEachEventIsWrittenOnce: events are written whether or not an endpoint subscribes to them, each once, and
// deliveries only for the enabled endpoints of the account that subscribe.
func TestEachEventIsWrittenOnce(t *testing.T) {
	f := newFixture(t)
	other := f.NewAccount(t)
	f.disable()
	f.delete(f.endpoint(f.account, "https://deleted/"), "0")
	f.endpoint(f.account, "https://completed/", events.RunCompleted)
	f.endpoint(f.account, "https://alerts/", events.AlertOpened, events.RunFailed)
	f.endpoint(f.account, "https://all/")
	run, data := store.NewID(), []byte(`{"b":1, "a":[2]}`)
	ofRun := func(account store.ID, eventType string) events.Cause {
		return events.Cause{AccountID: account, ID: store.NewID(), Type: eventType, SubjectID: run, Data: data}
	}
	completed, theirs := ofRun(f.account, events.RunCompleted), ofRun(other, events.RunCompleted)
	must(t, f.tryRecord(completed, ofRun(f.account, events.AlertOpened), theirs))
	// A run has one final event.
	must(t, f.tryRecord(ofRun(f.account, events.RunCompleted), ofRun(f.account, events.RunCanceled)))

	var got []string
	must(t, f.Pool.QueryRow(t.Context(), `
SELECT array_agg(concat_ws(' ', d.status, e.url, v.type) ORDER BY e.url, v.type)
FROM webhook_deliveries d JOIN webhook_endpoints e ON e.account_id = d.account_id AND e.id = d.endpoint_id
JOIN events v ON v.account_id = d.account_id AND v.id = d.event_id`).Scan(&got))
	equal(t, "deliveries", []string{"pending https://alerts/ alert.opened", "pending https://all/ alert.opened",
		"pending https://all/ run.completed", "pending https://completed/ run.completed"}, got)
	f.rows(3, `events`)
	e, err := events.Get(t.Context(), f.Pool, f.account, completed.ID)
	must(t, err)
	equal(t, "data", string(data), string(e.Data))
	_, err = events.Get(t.Context(), f.Pool, f.account, theirs.ID)
	wantError(t, "event of another account", events.ErrNotFound, err)

	// An account that is due does not wait longer because of another event.
	f.exec(`UPDATE webhook_queues SET wake_at = now() - interval '1 hour'`)
	f.record(f.account, 1)
	f.rows(1, `webhook_queues WHERE wake_at < now() - interval '59 minutes'`)
}

// TestEventTime: an event and its deliveries have one time, which is not before what caused the event in the same
// transaction. The account is due from then on, however long ago the transaction began.
func TestEventTime(t *testing.T) {
	f := newFixture(t)
	tx := storetest.Begin(t, f.Pool, `CREATE TEMPORARY TABLE cause ON COMMIT DROP AS SELECT clock_timestamp() AS at`)
	must(t, Record(t.Context(), tx, []events.Cause{cause(f.account, events.RunCompleted)}))
	var ordered bool
	must(t, tx.QueryRow(t.Context(), `
SELECT c.at <= e.created_at AND e.created_at = d.created_at AND c.at <= q.wake_at
FROM cause c, webhook_queues q, events e JOIN webhook_deliveries d ON d.account_id = e.account_id AND d.event_id = e.id`).Scan(&ordered))
	equal(t, "the event and the wake follow the cause, and the delivery has the time of the event", true, ordered)
}

// TestRecordConcurrently: concurrent transactions about the same runs write each event once, and wait for each other.
func TestRecordConcurrently(t *testing.T) {
	f := newFixture(t)
	causes := []events.Cause{cause(f.account, events.RunCompleted)}
	for range 4 {
		account := f.NewAccount(t)
		f.endpoint(account, aURL)
		causes = append(causes, cause(account, events.RunCompleted))
	}
	var all []<-chan error
	for range 4 {
		again := slices.Clone(causes)
		for i := range again {
			again[i].ID = store.NewID()
		}
		all = append(all, start(func() error { return f.tryRecord(again...) }))
	}
	for _, recorded := range all {
		must(t, <-recorded)
	}
	f.rows(5, `webhook_deliveries d JOIN events e ON e.account_id = d.account_id AND e.id = d.event_id`)
}

// TestQueueWhileEventIsRecorded: the queue of an account with a disabled endpoint is locked while an event is recorded,
// because the endpoint may be enabled before subscriptions are read.
func TestQueueWhileEventIsRecorded(t *testing.T) {
	f := newFixture(t)
	f.disable()
	tx := storetest.Begin(t, f.Pool, "")
	must(t, Record(t.Context(), tx, []events.Cause{cause(f.account, events.RunCompleted)}))
	const free = `WITH free AS (SELECT FROM webhook_queues FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`
	equal(t, "queues that are not locked", 0, f.Count(t, free))
}

// TestRecordManyLocksLast: while many events are recorded, queues are not locked, unless an endpoint has changed since.
// Then they are recorded again, for the endpoints of the account after that.
func TestRecordManyLocksLast(t *testing.T) {
	f := newFixture(t)
	var free []int
	tx := storetest.Begin(t, f.Pool, "")
	must(t, RecordMany(t.Context(), tx, []store.ID{f.account}, func(yield func([]events.Cause) bool) {
		for range 2 {
			if !yield([]events.Cause{cause(f.account, events.RunCompleted)}) {
				return
			}
			free = append(free, f.Count(t, `WITH free AS (SELECT FROM webhook_queues FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`))
			if len(free) == 2 {
				f.endpoint(f.account, bURL)
			}
		}
	}))
	equal(t, "queues that are not locked", []int{1, 1, 0, 0}, free)
	must(t, tx.Commit(t.Context()))
	f.rows(2, `events`)
	f.rows(4, `webhook_deliveries`)
	f.rows(1, `webhook_queues WHERE wake_at <= now()`)
}

// TestPurgeDeletesOldEvents: a purge deletes what is old, unless the clock is ahead, and an endpoint an hour after it
// was deleted.
func TestPurgeDeletesOldEvents(t *testing.T) {
	f := newFixture(t)
	gone := f.endpoint(f.account, "https://gone.example/")
	old := f.record(f.account, events.PurgeStep+10)
	f.exec(`UPDATE events SET created_at = now() - interval '30 days 1 minute'`)
	f.record(f.account, 3)
	f.delete(gone, "0")
	f.exec(`INSERT INTO webhook_hosts VALUES ('old.example', now() - interval '2 hours', 1), ('new.example', now(), 1)`)
	n, err := events.Purge(t.Context(), storetest.WithClockAhead(t, f.Pool, 40*24*time.Hour))
	if _, refused := errors.AsType[*store.ClockError](err); !refused || n != 0 {
		t.Errorf("with a clock 40 days ahead: %d events, %v", n, err)
	}
	n, err = events.Purge(t.Context(), f.Pool)
	must(t, err)
	equal(t, "events that are purged", int64(len(old)), n)
	must(t, Purge(t.Context(), f.Pool))
	f.rows(1, `webhook_hosts`)
	f.rows(1, `webhook_hosts WHERE host = 'new.example'`)
	f.rows(3, `events`)
	f.rows(3, `webhook_deliveries`)
	f.rows(3, `webhook_deliveries WHERE endpoint_id = $1`, f.e.ID)
	f.rows(2, `webhook_endpoints`) // a transaction that saw the endpoint may still refer to it
	f.exec(`UPDATE webhook_endpoints SET deleted_at = now() - interval '2 hours' WHERE id = $1`, gone.ID)
	must(t, Purge(t.Context(), f.Pool))
	f.rows(1, `webhook_endpoints`)
}

// TestEraseDeletesInSteps: what an account has is deleted in steps, also what a transaction that began before adds, and
// nothing of another account.
func TestEraseDeletesInSteps(t *testing.T) {
	f := newFixture(t)
	other := f.NewAccount(t)
	f.endpoint(other, aURL)
	f.delete(f.endpoint(f.account, "https://deleted.example/"), "1 hour")
	f.record(f.account, events.PurgeStep+10)
	f.record(other, 1)
	erase := func(of func(schema.Erasure) schema.EraseFunc) map[string]int64 {
		n := make(map[string]int64)
		for _, table := range slices.Concat(events.Capability.Tables, Capability.Tables) {
			if do := of(table.Erase); do != nil {
				rows, err := do(t.Context(), f.Pool, table.Name, f.account)
				must(t, err)
				n[table.Name] = rows
			}
		}
		return n
	}
	for _, want := range []int64{events.PurgeStep + 10, 1} {
		equal(t, "events", want, erase(func(e schema.Erasure) schema.EraseFunc { return e.First })["events"])
		f.rows(1, `webhook_endpoints WHERE deleted_at > now() - interval '1 minute'`)
		f.record(f.account, 1)
		f.rows(0, `webhook_deliveries WHERE account_id = $1`, f.account)
	}
	erase(func(e schema.Erasure) schema.EraseFunc { return e.Last })
	for _, table := range []string{"webhook_endpoints", "webhook_queues", "webhook_deliveries"} {
		f.rows(1, table)
		f.rows(1, table+` WHERE account_id = $1`, other)
	}
}

// TestDeletedEndpointHasNoBacklog: deliveries of a deleted endpoint are neither pending nor late, also where no process
// dispatches. Neither deliveries that wait for a retry nor those to disabled endpoints are late.
func TestDeletedEndpointHasNoBacklog(t *testing.T) {
	f := newFixture(t)
	late := func(of *Endpoint, by string) {
		t.Helper()
		f.exec(`UPDATE webhook_deliveries SET next_attempt_at = now() - $2::interval WHERE endpoint_id = $1`, of.ID, by)
		f.exec(`UPDATE webhook_queues SET wake_at = now() - interval '1 hour'`)
	}
	want := func(most, pending int, lag time.Duration) {
		t.Helper()
		b, err := ReadBacklog(t.Context(), f.Pool, most)
		if err != nil || b.Pending != pending || b.Lag < lag || b.Lag > lag+5*time.Minute {
			t.Errorf("got %+v, %v, want %d pending, due for %v", b, err, pending, lag)
		}
	}
	deleted := f.endpoint(f.account, "https://deleted.example/")
	f.record(f.account, 3)
	late(f.e, "10 minutes")
	late(deleted, "1 hour")
	want(100, 6, time.Hour)
	f.delete(deleted, "0")
	want(100, 3, 10*time.Minute)
	f.delete(f.e, "0")
	want(100, 0, 0)
	f.exec(`DELETE FROM webhook_deliveries`)

	f.e = f.endpoint(f.account, "https://disabled.example/")
	waiting := f.endpoint(f.account, "https://waiting.example/")
	f.record(f.account, 1)
	late(f.e, "1 hour")
	late(waiting, "-1 hour")
	f.disable()
	want(100, 2, 0)
	want(1, 1, 0)
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
