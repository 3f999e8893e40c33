package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// database creates a migrated database.
func database(t *testing.T) (url string, pool *pgxpool.Pool) {
	t.Helper()
	url = storetest.URL(t)
	return url, open(t, url)
}

func open(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := store.Open(t.Context(), url, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func number(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDuplicatesOverTwoProcesses: 64 clients send one request with one key at once, through two processes. One run is
// created, and all 64 responses are equal.
func TestDuplicatesOverTwoProcesses(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t, 100_000)
	processes := []*process{startServe(t, url), startServe(t, url)}

	const clients = 64
	answers := make([]answer, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			a, err := processes[i%2].do(t.Context(), "POST", "", key.Key, "duplicates", testRun)
			if err != nil {
				t.Error(err)
			}
			answers[i] = a
		})
	}
	wg.Wait()
	first := 0
	for _, a := range answers {
		if a.status != 202 || a.body != answers[0].body {
			t.Errorf("got %d %s, want 202 %s", a.status, a.body, answers[0].body)
		}
		if a.header.Get("Idempotent-Replayed") == "" {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d responses are not replays, want 1", first)
	}
	if got := number(t, pool, `SELECT count(*) FROM measurement_runs`); got != 1 {
		t.Errorf("got %d runs, want 1", got)
	}
}

// TestLimitOverTwoProcesses: two processes share a limit. One is killed while it serves requests, and started again.
// Each window admits exactly its limit; only requests in flight at the kill may be counted without a response.
func TestLimitOverTwoProcesses(t *testing.T) {
	t.Parallel()
	const limit, requests, clients = 100, 2000, 64
	url, pool, _, key := databaseOfCustomer(t, limit)
	processes := []*process{startServe(t, url), startServe(t, url)}

	type window struct{ admitted, refused int }
	windows := make(map[int]*window)
	var mu sync.Mutex
	inFlight := 0 // requests that the kill cut off
	send := func(p *process) error {
		a, err := p.do(t.Context(), "GET", "?path=/v1/me", key.Key, "", "")
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			if errors.Is(err, errCutOff) {
				inFlight++
			}
			return err
		}
		reset, err := strconv.Atoi(a.header.Get("X-RateLimit-Reset"))
		if err != nil {
			t.Error(err)
		}
		if windows[reset] == nil {
			windows[reset] = &window{}
		}
		switch a.status {
		case 200:
			windows[reset].admitted++
		case 429:
			windows[reset].refused++
		default:
			t.Errorf("got %d %s", a.status, a.body)
		}
		return nil
	}

	var wg sync.WaitGroup
	served := make(chan struct{}, clients)
	for range clients {
		wg.Go(func() {
			for n := 0; send(processes[1]) == nil; n++ { // until the process is killed
				if n == 0 {
					served <- struct{}{}
				}
			}
		})
	}
	for range clients / 4 {
		<-served
	}
	processes[1].kill()
	wg.Wait()
	if inFlight == 0 {
		t.Error("no request was in flight when the process was killed")
	}
	cut := inFlight

	processes[1] = startServe(t, url)
	for i := range requests {
		wg.Go(func() {
			if err := send(processes[i%2]); err != nil {
				t.Errorf("a request after the restart: %v", err)
			}
		})
	}
	wg.Wait()
	for reset, w := range windows {
		used := number(t, pool, `SELECT used FROM api_rate_limit_buckets WHERE window_start = to_timestamp($1::bigint - 60)`, reset)
		if used > limit || w.refused > 0 && used != limit || w.admitted > used || w.admitted < used-cut {
			t.Errorf("window until %d: %d admitted and %d refused; %d counted of a limit of %d; %d requests were cut off",
				reset, w.admitted, w.refused, used, limit, cut)
		}
	}
}

// TestNothingContainsARawKey looks for every key that was used, whole or without its public prefix, in each row of each
// table, in the logs and in the metrics.
func TestNothingContainsARawKey(t *testing.T) {
	t.Parallel()
	url, pool, account, key := databaseOfCustomer(t, 5)
	p := startServe(t, url)
	rotated := cli[madeKey](t, url, "keys", "rotate", key.ID)
	revoked := newKey(t, url, account, 5)
	cli[any](t, url, "keys", "revoke", revoked.ID)
	keys := []string{key.Key, rotated.Key, revoked.Key}
	for _, k := range keys {
		for range 7 { // beyond the limit, too
			p.get(t, "?path=/v1/me", k)
		}
		p.get(t, "?path=/v1/me&api_key="+k, "aiv_live_wrong")
		p.get(t, "?path=/v1/"+k, k)
		p.get(t, "/"+k, k)
		p.do(t.Context(), "POST", "", k, k[9:], strings.Replace(testRun, `"m"`, `"`+k+`"`, 1))
	}
	metrics, err := client.Get(p.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	var places = map[string]string{"the log": p.log.String(), "the metrics": readAll(t, metrics.Body)}
	rows, err := pool.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			t.Fatal(err)
		}
		places["the table "+table] = ""
	}
	if len(places) < 15 {
		t.Fatalf("only %d texts to search", len(places))
	}
	for place := range places {
		table, ok := strings.CutPrefix(place, "the table ")
		if !ok {
			continue
		}
		var text *string
		if err := pool.QueryRow(t.Context(), fmt.Sprintf(`SELECT string_agg(t::text, E'\n') FROM %s t`, table)).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if text != nil {
			places[place] = *text
		}
	}
	for place, text := range places {
		for _, k := range keys {
			if strings.Contains(text, k) || strings.Contains(text, k[len("aiv_live_")+8:]) {
				t.Errorf("%s contains a raw key", place)
			}
		}
	}
}

// TestRevocationHoldsElsewhere: a key is revoked, and the very next request to a process that has just served it is
// refused.
func TestRevocationHoldsElsewhere(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1000)
	p := startServe(t, url)
	if a := p.get(t, "?path=/v1/me", key.Key); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	cli[any](t, url, "keys", "revoke", key.ID)
	if a := p.get(t, "?path=/v1/me", key.Key); a.status != 401 {
		t.Errorf("got %d %s, want 401", a.status, a.body)
	}
}

// TestTerminationWaitsForRequests: SIGTERM ends the process with 0 once the requests in progress have their responses.
func TestTerminationWaitsForRequests(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1_000_000)
	p := startServe(t, url)
	var wg sync.WaitGroup
	var mu sync.Mutex
	answered := 0
	begun := make(chan struct{}, 64)
	for range 32 {
		wg.Go(func() {
			for i := range 10_000 {
				a, err := p.do(t.Context(), "GET", "?path=/v1/me", key.Key, "", "")
				if err != nil {
					return // it accepts no more connections
				}
				if a.status != 200 {
					t.Errorf("got %d %s", a.status, a.body)
				}
				mu.Lock()
				answered++
				mu.Unlock()
				if i == 0 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range 32 {
		<-begun
	}
	if err := p.stop(); err != nil {
		t.Errorf("aiv serve ended with %v\n%s", err, p.log.end())
	}
	wg.Wait()
	if answered == 0 {
		t.Error("nothing was answered")
	}
}
