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

// The benchmarks send requests straight to the handler, 64 at a time, over a PostgreSQL that does not wait for its
// disk: they show what the program itself costs. What a deployment serves is measured over HTTP against one that does.
//
//	go test ./gateway -run '^$' -bench . -benchmem

// benchmark sends requests with as many keys, none of which it spends.
func benchmark(b *testing.B, f *fixture, keys int, request func(n int64) *http.Request) {
	all := make([]string, keys)
	for i := range all {
		f.issue(b, "bench", "golden", auth.Scopes, auth.MaxRateLimit)
		all[i] = f.keys["bench"]
	}
	g := f.gateway()
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1)
			r := request(i)
			r.Header.Set("Authorization", "Bearer "+all[i%int64(keys)])
			w := httptest.NewRecorder()
			if g.ServeHTTP(w, r); w.Code >= 400 {
				b.Errorf("status %d", w.Code)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

func get(address string) func(int64) *http.Request {
	return func(int64) *http.Request { return httptest.NewRequest(http.MethodGet, Base+address, nil) }
}

func BenchmarkMeOneKey(b *testing.B)   { benchmark(b, newFixture(b), 8, get("?path=/v1/me")) }
func BenchmarkMeManyKeys(b *testing.B) { benchmark(b, newFixture(b), 500, get("?path=/v1/me")) }

func BenchmarkListRuns(b *testing.B) {
	f := newFixture(b)
	f.fill(b)
	benchmark(b, f, 8, get("?path=/v1/runs&limit=50"))
}

func BenchmarkCreateRun(b *testing.B) {
	body := strings.Replace(smallRun, `"repetitions":1`, `"repetitions":6`, 1)
	benchmark(b, newFixture(b), 8, func(n int64) *http.Request {
		r := httptest.NewRequest(http.MethodPost, Base+"/v1/runs", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", fmt.Sprint("bench-", n))
		return r
	})
}
