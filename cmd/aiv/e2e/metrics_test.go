package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// exposition reads a page of metrics strictly: https://prometheus.io/docs/instrumenting/exposition_formats/
type exposition struct {
	kinds  map[string]string  // of families
	values map[string]float64 // by name and labels, as they are written
}

var sampleLine = regexp.MustCompile(`^([a-z_]+)(\{[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z_]+="(?:[^"\\\n]|\\[\\"n])*")*\})? (\S+)$`)

func readExposition(t *testing.T, page string) *exposition {
	t.Helper()
	e := &exposition{make(map[string]string), make(map[string]float64)}
	family := ""
	var last float64 // bucket of a histogram
	for n, line := range strings.Split(strings.TrimSuffix(page, "\n"), "\n") {
		if help, ok := strings.CutPrefix(line, "# HELP "); ok {
			var text string
			family, text, _ = strings.Cut(help, " ")
			if _, again := e.kinds[family]; again || !strings.HasSuffix(text, ".") {
				t.Errorf("line %d: %s comes twice, or is not explained", n+1, family)
			}
			e.kinds[family] = ""
			continue
		}
		if kind, ok := strings.CutPrefix(line, "# TYPE "+family+" "); ok && e.kinds[family] == "" {
			e.kinds[family] = kind
			if (kind == "counter") != strings.HasSuffix(family, "_total") || !slices.Contains([]string{"counter", "gauge", "histogram"}, kind) {
				t.Errorf("line %d: %s is a %s", n+1, family, kind)
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("line %d: %q", n+1, line)
			continue
		}
		suffix, ok := strings.CutPrefix(m[1], family)
		if !ok || e.kinds[family] == "" || (suffix != "") != (e.kinds[family] == "histogram") {
			t.Errorf("line %d: %q is among the samples of %s", n+1, line, family)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil || e.kinds[family] == "counter" && v < 0 {
			t.Errorf("line %d: %q: %v", n+1, line, err)
		}
		if _, again := e.values[m[1]+m[2]]; again {
			t.Errorf("line %d: %s%s comes twice", n+1, m[1], m[2])
		}
		e.values[m[1]+m[2]] = v
		switch suffix {
		case "_bucket":
			if v < last {
				t.Errorf("line %d: a bucket has less than the one before", n+1)
			}
			last = v
		case "_count":
			if v != last {
				t.Errorf("line %d: the count is not the last bucket's", n+1)
			}
			last = 0
		}
	}
	return e
}

// explained checks that OPERATING.md explains each family.
func (e *exposition) explained(t *testing.T) {
	t.Helper()
	operating, err := os.ReadFile("../OPERATING.md")
	must(t, err)
	for _, family := range slices.Sorted(maps.Keys(e.kinds)) {
		if !strings.Contains(string(operating), "`"+family+"`") {
			t.Errorf("OPERATING.md does not explain %s", family)
		}
	}
}

func (p *process) asAdmin(t *testing.T, method, path, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.admin+path, strings.NewReader(body))
	must(t, err)
	w, err := client.Do(r)
	must(t, err)
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	must(t, err)
	return w.StatusCode, string(raw)
}

// TestMetricsCountRequests checks the values on the page of metrics after known requests, and that OPERATING.md
// explains each family.
func TestMetricsCountRequests(t *testing.T) {
	t.Parallel()
	url, pool, account, key := databaseOfCustomer(t, 1000)
	narrow, revoked := newKey(t, url, account, 1), newKey(t, url, account, 1)
	cli[any](t, url, "keys", "revoke", revoked.ID)
	expiring := cli[madeKey](t, url, "keys", "create", "-account", account, "-name", "short", "-scopes", "runs:read", "-expires",
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	p := startServe(t, url)
	for _, order := range [][2]string{
		{"a", testRun}, {"a", testRun}, {"a", strings.Replace(testRun, `"repetitions":3`, `"repetitions":2`, 1)},
		{"b", strings.Replace(testRun, `"m"`, `"unknown"`, 1)},
	} {
		if _, err := p.do(t.Context(), "POST", "", key.Key, order[0], order[1]); err != nil {
			t.Fatal(err)
		}
	}
	p.get(t, "?path=/v1/me", revoked.Key)
	admitted := 0.0
	for p.get(t, "?path=/v1/me", narrow.Key).status == 200 {
		admitted++ // one a minute
	}
	_, page := p.asAdmin(t, "GET", "/metrics", "")
	e := readExposition(t, page)
	for sample, want := range map[string]float64{
		`aiv_requests_total{route="GET /v1/me",status="200"}`:               admitted,
		`go_sched_gomaxprocs_threads`:                                       float64(runtime.GOMAXPROCS(0)),
		`aiv_request_seconds_count{route="POST /v1/runs"}`:                  4,
		`aiv_limiter_decisions_total{decision="admitted"}`:                  4 + admitted,
		`aiv_limiter_decisions_total{decision="refused"}`:                   1,
		`aiv_limiter_decisions_total{decision="unknown_key"}`:               1,
		`aiv_run_requests_total{outcome="created"}`:                         1,
		`aiv_run_requests_total{outcome="replayed"}`:                        1,
		`aiv_run_requests_total{outcome="conflict"}`:                        1,
		`aiv_run_requests_total{outcome="refused"}`:                         1,
		`aiv_run_requests_total{outcome="failed"}`:                          0,
		`aiv_jobs_created_total`:                                            6,
		`aiv_batch_size_sum{batcher="counts"}`:                              5 + admitted,
		`aiv_batch_size_bucket{batcher="counts",le="1"}`:                    5 + admitted,
		`aiv_batch_size_count{batcher="lookups"}`:                           3,
		`aiv_batch_waiting{batcher="counts"}`:                               0,
		`aiv_pool_max_connections{pool="count"}`:                            1,
		`aiv_pool_max_connections{pool="write"}`:                            16,
		`aiv_pool_max_connections{pool="read"}`:                             5,
		`aiv_pool_max_connections{pool="background"}`:                       2,
		`aiv_connections_rejected_total{bound="total"}`:                     0,
		`aiv_log_lines_dropped_total`:                                       0,
		`aiv_task_runs_total{task="purge_rate_limits",result="failed"}`:     0,
		`aiv_database_up`:                                                   1,
		`aiv_keys_expiring`:                                                 1,
		`aiv_queue_open_runs`:                                               1,
		`aiv_provider_dependency_unmet{provider="p",dependency="contract"}`: 0,
		`aiv_batch_overloaded_total{batcher="small_runs"}`:                  0,
		`aiv_batches_failed_total{batcher="small_runs"}`:                    0,
		`aiv_batch_size_sum{batcher="small_runs"}`:                          3, // the first, its replay and the conflict
		`aiv_batches_retried_total{batcher="large_runs"}`:                   0,
		`aiv_batches_retried_total{batcher="metered_runs"}`:                 0,
		`aiv_batches_retried_total{batcher="large_metered_runs"}`:           0,
	} {
		if got, ok := e.values[sample]; !ok || got != want {
			t.Errorf("%s: got %v (%v), want %v", sample, got, ok, want)
		}
	}
	e.explained(t)
	p.awaitLog(t, `"a key expires soon","credential":"`+expiring.ID+`"`)

	storetest.Exec(t, pool, `ALTER TABLE provider_dependencies RENAME TO gone`)
	_, page = p.asAdmin(t, "GET", "/metrics", "")
	e = readExposition(t, page)
	if up, ok := e.values["aiv_database_up"]; !ok || up != 0 {
		t.Errorf("a database that does not answer is up: %v, %v", up, ok)
	}
}

// TestRequestsAreLogged: each request at the level that is set is logged. One with a key of a wrong checksum costs no
// round trip to the database, and each 401 takes 100 ms.
func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	url, _, account, key := databaseOfCustomer(t, 1000)
	revoked := newKey(t, url, account, 1000)
	cli[any](t, url, "keys", "revoke", revoked.ID)
	p := startServe(t, url)
	if _, err := p.do(t.Context(), "POST", "", key.Key, "first", testRun); err != nil { // which reads the catalog
		t.Fatal(err)
	}
	p.asAdmin(t, "PUT", "/log-level", "warn")
	silent := p.get(t, "?path=/v1/me", key.Key).header.Get("X-Request-Id")
	p.asAdmin(t, "PUT", "/log-level", "info")
	guessed := p.get(t, "?path=/v1/me", key.Key[:len(key.Key)-6]+"000000").header.Get("X-Request-Id")
	refused := p.get(t, "?path=/v1/me", revoked.Key).header.Get("X-Request-Id")
	a, err := p.do(t.Context(), "POST", "", key.Key, "key", testRun)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/v1/runs?limit=0", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+key.Key)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	w, err := client.Do(r)
	must(t, err)
	w.Body.Close()
	if err := p.stop(); err != nil { // and so has written all lines
		t.Fatal(err)
	}
	lines := make(map[string]map[string]any)
	for s := bufio.NewScanner(strings.NewReader(p.log.String())); s.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		lines[fmt.Sprint(line["request_id"])] = line
	}
	if line, ok := lines[silent]; ok {
		t.Errorf("logged at the level warn: %v", line)
	}
	for id, want := range map[string]map[string]any{
		guessed:                      {"status": 401.0, "round_trips": 0.0, "code": "invalid_api_key", "account": nil, "credential": nil},
		a.header.Get("X-Request-Id"): {"method": "POST", "route": "POST /v1/runs", "status": 202.0, "round_trips": 2.0, "account": account, "credential": key.ID},
		w.Header.Get("X-Request-Id"): {"method": "GET", "route": "GET /v1/runs", "status": 400.0, "round_trips": 1.0, "code": "invalid_parameter",
			"account": account, "credential": key.ID, "trace_id": "0af7651916cd43dd8448eb211c80319c", "parent_id": "b7ad6b7169203331"},
	} {
		for name, value := range want {
			if got := lines[id][name]; got != value {
				t.Errorf("%s: %s is %v, want %v", id, name, got, value)
			}
		}
	}
	for _, id := range []string{guessed, refused} {
		if us, _ := lines[id]["us"].(float64); lines[id]["status"] != 401.0 || us < 100_000 {
			t.Errorf("a 401 without its delay: %v", lines[id])
		}
	}
}
