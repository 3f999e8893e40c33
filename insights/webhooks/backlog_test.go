package webhooks

import (
	"testing"
	"time"
)

// TestBacklog: deliveries of a deleted endpoint are neither pending nor late, also where no process dispatches.
func TestBacklog(t *testing.T) {
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
	if err := f.Delete(t.Context(), account, deleted.ID); err != nil {
		t.Fatal(err)
	}
	want(3, time.Minute)
	if err := f.Delete(t.Context(), account, kept.ID); err != nil {
		t.Fatal(err)
	}
	want(0, 0)
}
