package webhooks

import (
	"testing"
	"time"

	"aiv/store"
)

// TestDeletedEndpointHasNoBacklog: deliveries of a deleted endpoint are neither pending nor late, also where no process dispatches.
func TestDeletedEndpointHasNoBacklog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	account := f.NewAccount(t)
	kept, deleted := f.endpoint(t, account, "https://kept.example/"), f.endpoint(t, account, "https://deleted.example/")
	f.record(t, account, 3)
	late := func(of *Endpoint, by string) {
		t.Helper()
		f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() - $2::interval WHERE endpoint_id = $1`, of.ID, by)
	}
	late(kept, "1 minute")
	late(deleted, "1 hour")
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() - interval '1 hour'`)
	want := func(pending int, lag time.Duration) {
		t.Helper()
		b, err := ReadBacklog(t.Context(), f.Pool, 100)
		if err != nil || b.Pending != pending || b.Lag < lag || b.Lag > lag+30*time.Second {
			t.Errorf("got %+v, %v, want %d pending, due for %v", b, err, pending, lag)
		}
	}
	want(6, time.Hour)
	must(t, f.Delete(t.Context(), account, deleted.ID))
	want(3, time.Minute)
	must(t, f.Delete(t.Context(), account, kept.ID))
	want(0, 0)
	f.Exec(t, `DELETE FROM webhook_deliveries`)

	// Neither deliveries that wait for a retry nor those to disabled endpoints are late.
	waiting := f.endpoint(t, account, "https://waiting.example/")
	f.record(t, account, 1)
	late(waiting, "-1 hour")
	want(1, 0)
	disabled := f.endpoint(t, account, "https://disabled.example/")
	f.record(t, account, 1)
	late(disabled, "1 hour")
	late(waiting, "-1 hour")
	f.Exec(t, `UPDATE webhook_endpoints SET disabled_reason = 'customer' WHERE id = $1`, disabled.ID)
	want(3, 0)
	if b, err := ReadBacklog(t.Context(), f.Pool, 2); err != nil || b.Pending != 2 {
		t.Errorf("got %+v, %v, want 2 pending", b, err)
	}

	// The first accounts are those that have waited longest.
	other := f.NewAccount(t)
	f.endpoint(t, other, "https://other.example/")
	f.record(t, other, 1)
	f.Exec(t, `UPDATE webhook_deliveries SET next_attempt_at = now() - interval '2 hours' WHERE account_id = $1`, other)
	f.Exec(t, `UPDATE webhook_queues SET wake_at = now() - interval '2 hours' WHERE account_id = $1`, other)
	var pending, seconds float64
	must(t, f.Pool.QueryRow(t.Context(), readBacklog, store.OnCitus(citusBacklog), 1, 100).Scan(&pending, &seconds))
	if seconds < 7200 {
		t.Errorf("the lag is %v s", seconds)
	}
}
