package delivery

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// BenchmarkDeliver measures deliveries to healthy endpoints of 20 accounts, beside a backlog of pending deliveries to
// an endpoint that waits for a retry.
func BenchmarkDeliver(b *testing.B) {
	for _, backlog := range []int{0, 200_000} {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			f := newFixture(b)
			var received atomic.Int64
			done := make(chan struct{}, 1)
			r := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				if received.Add(1) == int64(b.N) {
					done <- struct{}{}
				}
			}))
			b.Cleanup(r.Close)
			if backlog > 0 {
				c := f.customer("http://127.0.0.1:1024/")
				for range backlog / 10_000 {
					f.Exec(b, `
WITH e AS (INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT $1, gen_random_uuid(), 'run.completed', gen_random_uuid(), '{}' FROM generate_series(1, $3) RETURNING id)
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, next_attempt_at) 
  SELECT $1, id, $2, now() + interval '1 hour' FROM e`, c.account, c.endpoint.ID, 10_000)
				}
				c.wake()
			}
			const accounts = 20
			for i := range accounts {
				c := f.customer(fmt.Sprintf("%s/%d", r.URL, i))
				if n := (b.N + accounts - 1 - i) / accounts; n > 0 {
					c.record(n)
				}
			}
			f.Exec(b, `ANALYZE webhook_deliveries`)
			b.ResetTimer()
			stop := f.run()
			<-done
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
			stop()
		})
	}
}
