package gateway_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/catalog"
	"aiv/gateway"
	"aiv/limits"
	"aiv/store"
	"aiv/store/storetest"
)

// TestFaultShedding: the database does not answer, and more requests arrive than may wait for it. The excess is refused
// at once with Retry-After; waiting requests are served when the database answers.
func TestFaultShedding(t *testing.T) {
	t.Parallel()
	const waiting, requests = 20, 100
	f := newFixture(t)
	g := gateway.New(gateway.Config{
		Limits: limits.New(limits.Config{Pool: f.pool, Timeout: 10 * time.Second, MaxWaiting: waiting, CatalogRevision: catalog.RevisionSQL}),
		Log:    slog.New(slog.DiscardHandler), NewID: store.NewID, Timeout: 10 * time.Second, Metrics: gateway.NewMetrics(),
	})
	ask(g, f.keys["full"], "GET", "?path=/v1/me", "")
	tx, err := f.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(t.Context())
	_, err = tx.Exec(t.Context(), `SELECT FROM api_rate_limit_buckets WHERE account_id = $1 AND credential_id = $2 FOR UPDATE`,
		f.accounts["golden"], f.credentials["full"])
	must(t, err)

	var mu sync.Mutex
	served, shed := 0, 0
	var wg sync.WaitGroup
	ended := make(chan struct{}, requests)
	for range requests {
		wg.Go(func() {
			w := ask(g, f.keys["full"], "GET", "?path=/v1/me", "")
			ended <- struct{}{}
			mu.Lock()
			defer mu.Unlock()
			switch body := w.Body.String(); {
			case w.Code == 200:
				served++
			case w.Code == 503 && strings.Contains(body, `"code":"overloaded"`) && w.Header().Get("Retry-After") != "":
				shed++
			case w.Code == 503 && strings.Contains(body, `"code":"unavailable"`) && storetest.OnCitus(): // it gives up on locks sooner
			default:
				t.Errorf("got %d %s", w.Code, body)
			}
		})
	}
	for range requests / 2 { // while nothing is served: these are refused at once
		<-ended
	}
	must(t, tx.Rollback(t.Context()))
	wg.Wait()
	if shed < requests/2 || served == 0 || served > waiting+requests/4 {
		t.Errorf("%d requests were served and %d refused", served, shed)
	}
}
