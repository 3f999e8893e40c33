package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"aiv/auth"
)

// BenchmarkGateway sends requests straight to the handler, 64 at a time, with several keys, none of which it spends,
// over a PostgreSQL that does not wait for its disk: it shows what the program itself costs. What a deployment serves is
// measured over HTTP against one that does.
//
//	go test ./gateway -run '^$' -bench . -benchmem
func BenchmarkGateway(b *testing.B) {
	f := newFixture(b)
	f.fill(b)
	for _, bench := range []struct {
		name, method, address, body string
		keys                        int
	}{
		{"me of 8 keys", "GET", "?path=/v1/me", "", 8},
		{"me of 500 keys", "GET", "?path=/v1/me", "", 500},
		{"a page of runs", "GET", "?path=/v1/runs&limit=50", "", 8},
		{"a new run", "POST", "/v1/runs", strings.Replace(smallRun, `"repetitions":1`, `"repetitions":6`, 1), 8},
	} {
		b.Run(bench.name, func(b *testing.B) {
			keys := make([]string, bench.keys)
			for i := range keys {
				f.issue(b, "bench", "golden", auth.Scopes, auth.MaxRateLimit)
				keys[i] = f.keys["bench"]
			}
			g := f.gateway()
			b.SetParallelism(32)
			b.ReportAllocs()
			b.ResetTimer()
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					r, w := httptest.NewRequest(bench.method, Base+bench.address, strings.NewReader(bench.body)), httptest.NewRecorder()
					r.Header = http.Header{"Authorization": {"Bearer " + keys[i%int64(len(keys))]}, "Content-Type": {"application/json"},
						"Idempotency-Key": {fmt.Sprint("bench-", i)}}
					if g.ServeHTTP(w, r); w.Code >= 400 {
						b.Errorf("status %d", w.Code)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
