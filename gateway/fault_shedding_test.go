package gateway_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
	server := httptest.NewServer(gateway.New(gateway.Config{
		Limits: limits.New(limits.Config{Pool: f.pool, Timeout: 10 * time.Second, MaxWaiting: waiting, CatalogRevision: catalog.RevisionSQL}),
		Log:    slog.New(slog.DiscardHandler), NewID: store.NewID, Timeout: 10 * time.Second, Metrics: gateway.NewMetrics(),
	}))
	defer server.Close()
	f.askAs(t, server.URL, "full", "GET", "/v1/me", "")
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
			defer func() { ended <- struct{}{} }()
			r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+gateway.Base+"/v1/me", nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+f.keys["full"])
			w, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Body.Close()
			var problem struct{ Code string }
			json.NewDecoder(w.Body).Decode(&problem)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case w.StatusCode == 200:
				served++
			case w.StatusCode == 503 && problem.Code == "overloaded" && w.Header.Get("Retry-After") != "":
				shed++
			case w.StatusCode == 503 && problem.Code == "unavailable" && storetest.OnCitus(): // it gives up on locks sooner
			default:
				t.Errorf("got %d %+v", w.StatusCode, problem)
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
