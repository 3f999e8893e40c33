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
	completed, theirs := cause(f.account, events.RunCompleted), cause(other, events.RunCompleted)
	completed.Data = []byte(`{"b":1, "a":[2]}`)
	must(t, f.tryRecord(completed, cause(f.account, events.AlertOpened), theirs))
	for _, again := range []string{events.RunCompleted, events.RunCanceled} { // a run has one final event
		c := cause(f.account, again)
		c.SubjectID = completed.SubjectID
		must(t, f.tryRecord(c))
	}

	equal(t, "https://alerts/ alert.opened, https://all/ alert.opened, https://all/ run.completed, https://completed/ run.completed",
		storetest.Value[string](t, f.Pool, `
SELECT string_agg(concat_ws(' ', e.url, v.type), ', ' ORDER BY e.url, v.type)
FROM webhook_deliveries d JOIN webhook_endpoints e ON e.account_id = d.account_id AND e.id = d.endpoint_id
JOIN events v ON v.account_id = d.account_id AND v.id = d.event_id WHERE d.status = 'pending'`), "deliveries")
	f.Rows(t, 3, `events`)
	e, err := events.Get(t.Context(), f.Pool, f.account, completed.ID)
	must(t, err)
	equal(t, string(completed.Data), string(e.Data), "data")
	_, err = events.Get(t.Context(), f.Pool, f.account, theirs.ID)
	wantError(t, "event of another account", events.ErrNotFound, err)
	// An account that is due does not wait longer because of another event.
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() - interval '1 hour'`)
	f.record(f.account, 1)
	f.Rows(t, 1, `webhook_queues WHERE wake_at < now() - interval '59 minutes'`)
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
	storetest.AtOnce(4, func(int) {
		again := slices.Clone(causes)
		for i := range again {
			again[i].ID = store.NewID()
		}
		if err := f.tryRecord(again...); err != nil {
			t.Error(err)
		}
	})
	f.Rows(t, 5, `webhook_deliveries d JOIN events e ON e.account_id = d.account_id AND e.id = d.event_id`)
}

// TestPurgeDeletesOldEvents: a purge deletes what is old, unless the clock is ahead, and an endpoint an hour after it
// was deleted.
func TestPurgeDeletesOldEvents(t *testing.T) {
	f := newFixture(t)
	gone := f.endpoint(f.account, "https://gone.example/")
	old := f.record(f.account, events.PurgeStep+10)
	f.Exec(t, `UPDATE events SET created_at = now() - interval '30 days 1 minute'`)
	f.record(f.account, 3)
	f.delete(gone, "0")
	f.Exec(t, `INSERT INTO webhook_hosts VALUES ('old.example', now() - interval '2 hours', 1), ('new.example', now(), 1)`)
	n, err := events.Purge(t.Context(), storetest.WithClockAhead(t, f.Pool, 40*24*time.Hour))
	if _, refused := errors.AsType[*store.ClockError](err); !refused || n != 0 {
		t.Errorf("with a clock 40 days ahead: %d events, %v", n, err)
	}
	n, err = events.Purge(t.Context(), f.Pool)
	must(t, err)
	equal(t, int64(len(old)), n, "events that are purged")
	must(t, Purge(t.Context(), f.Pool))
	equal(t, "new.example", storetest.Value[string](t, f.Pool, `SELECT string_agg(host, ' ') FROM webhook_hosts`), "hosts")
	f.Rows(t, 3, `events`)
	f.Rows(t, 3, `webhook_deliveries`)
	f.Rows(t, 3, `webhook_deliveries WHERE endpoint_id = $1`, f.e.ID)
	f.Rows(t, 2, `webhook_endpoints`) // a transaction that saw the endpoint may still refer to it
	f.Exec(t, `UPDATE webhook_endpoints SET deleted_at = now() - interval '2 hours' WHERE id = $1`, gone.ID)
	must(t, Purge(t.Context(), f.Pool))
	f.Rows(t, 1, `webhook_endpoints`)
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
		equal(t, want, erase(func(e schema.Erasure) schema.EraseFunc { return e.First })["events"], "events")
		f.Rows(t, 1, `webhook_endpoints WHERE deleted_at > now() - interval '1 minute'`)
		f.record(f.account, 1)
		f.Rows(t, 0, `webhook_deliveries WHERE account_id = $1`, f.account)
	}
	erase(func(e schema.Erasure) schema.EraseFunc { return e.Last })
	for _, table := range []string{"webhook_endpoints", "webhook_queues", "webhook_deliveries"} {
		f.Rows(t, 1, table)
		f.Rows(t, 1, table+` WHERE account_id = $1`, other)
	}
}

// TestBacklog: deliveries of a deleted endpoint are neither pending nor late, also where no process dispatches. Neither
// deliveries that wait for a retry nor those to disabled endpoints are late.
func TestBacklog(t *testing.T) {
	f := newFixture(t)
	deleted, waiting := f.endpoint(f.account, "https://deleted.example/"), f.endpoint(f.account, "https://waiting.example/")
	f.record(f.account, 3)
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() - interval '2 hours'`)
	for due, endpoint := range map[string]*Endpoint{"-10 minutes": f.e, "-1 hour": deleted, "1 hour": waiting} {
		f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() + $2::interval WHERE endpoint_id = $1`, endpoint.ID, due)
	}
	for _, step := range []struct {
		change        func()
		most, pending int
		lag           time.Duration
	}{
		{func() {}, 100, 9, time.Hour},
		{func() { f.delete(deleted, "0") }, 100, 6, 10 * time.Minute},
		{f.disable, 100, 6, 0},
		{func() {}, 1, 1, 0},
		{func() { f.delete(f.e, "0") }, 100, 3, 0},
	} {
		step.change()
		b, err := ReadBacklog(t.Context(), f.Pool, step.most)
		if err != nil || b.Pending != step.pending || b.Lag < step.lag || b.Lag > step.lag+5*time.Minute {
			t.Errorf("got %+v, %v, want %d pending, due for %v", b, err, step.pending, step.lag)
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
			free = append(free, storetest.Value[int](t, f.Pool,
				`WITH free AS (SELECT FROM webhook_queues FOR UPDATE SKIP LOCKED) SELECT count(*) FROM free`))
			if len(free) == 2 {
				f.endpoint(f.account, "https://b/")
			}
		}
	}))
	equal(t, []int{1, 1, 0, 0}, free, "queues that are not locked")
	must(t, tx.Commit(t.Context()))
	f.Rows(t, 2, `events`)
	f.Rows(t, 4, `webhook_deliveries`)
	f.Rows(t, 1, `webhook_queues WHERE wake_at <= now()`)
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
	equal(t, true, ordered, "the event and the wake follow the cause, and the delivery has the time of the event")
}
