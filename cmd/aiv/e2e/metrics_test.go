package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

var (
	familyLine = regexp.MustCompile(`(?m)^# TYPE (\S+) (counter|gauge|histogram)$`)
	sampleLine = regexp.MustCompile(`(?m)^([a-z_]+(?:\{.*\})?) (\S+)$`)
)

// samples returns the values of a page of metrics, by name and labels as they are written.
func samples(t *testing.T, page string) map[string]float64 {
	t.Helper()
	values := make(map[string]float64)
	for _, m := range sampleLine.FindAllStringSubmatch(page, -1) {
		v, err := strconv.ParseFloat(m[2], 64)
		if _, again := values[m[1]]; again || err != nil {
			t.Errorf("%s comes twice, or is not a number: %v", m[0], err)
		}
		values[m[1]] = v
	}
	return values
}

// hasSamples checks some values of a page, that no family of metrics comes twice, and that OPERATING.md explains each.
func hasSamples(t *testing.T, page string, want map[string]float64) {
	t.Helper()
	operating, err := os.ReadFile("../OPERATING.md")
	must(t, err)
	families := make(map[string]bool)
	for _, m := range familyLine.FindAllStringSubmatch(page, -1) {
		if families[m[1]] || !strings.Contains(string(operating), "`"+m[1]+"`") {
			t.Errorf("%s comes twice, or OPERATING.md does not explain it", m[1])
		}
		families[m[1]] = true
	}
	got := samples(t, page)
	for sample, value := range want {
		if v, ok := got[sample]; !ok || v != value {
			t.Errorf("%s: got %v (%t), want %v", sample, v, ok, value)
		}
	}
}

// TestRequestsAreLogged: known requests are counted on the page of metrics, and each is logged at the level that is set.
// One with a key of a wrong checksum costs no round trip to the database, and each 401 takes 100 ms. No key, without its
// public prefix, is in a row of a table, in the log, or in the metrics.
func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	url, pool, account, key := databaseOfCustomer(t)
	narrow, revoked := newKey(t, url, account, 1), newKey(t, url, account, 1000)
	cli[any](t, url, "keys", "revoke", revoked.ID)
	expiring := cli[madeKey](t, url, "keys", "create", "-account", account, "-name", "short", "-scopes", "runs:read", "-expires",
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	p := startServe(t, url)
	ids := make(map[string]string) // of requests
	order := func(name, key, body string) {
		t.Helper()
		a, err := p.do(t.Context(), "POST", "", key, name, body)
		must(t, err)
		ids[name] = a.header.Get("X-Request-Id")
	}
	order("first", key.Key, testRun) // which reads the catalog
	order("first", key.Key, testRun)
	order("first", key.Key, strings.Replace(testRun, `"repetitions":3`, `"repetitions":2`, 1))
	order("refused", key.Key, strings.Replace(testRun, `"m"`, `"unknown"`, 1))
	ids["revoked"] = p.get(t, "?path=/v1/me", revoked.Key).header.Get("X-Request-Id")
	admitted := 0.0
	for p.get(t, "?path=/v1/me", narrow.Key).status == 200 {
		admitted++ // one a minute
	}
	hasSamples(t, p.databaseMetrics(t), map[string]float64{
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
		`aiv_batch_size_sum{batcher="small_runs"}`:                          3, // the first, its replay and the conflict
		`aiv_batch_size_count{batcher="lookups"}`:                           3,
		`aiv_pool_max_connections{pool="write"}`:                            16,
		`aiv_connections_rejected_total{bound="total"}`:                     0,
		`aiv_log_lines_dropped_total`:                                       0,
		`aiv_task_runs_total{task="purge_rate_limits",result="failed"}`:     0,
		`aiv_keys_expiring`:                                                 1,
		`aiv_queue_open_runs`:                                               1,
		`aiv_provider_dependency_unmet{provider="p",dependency="contract"}`: 0,
	})
	p.awaitLog(t, `"a key expires soon","credential":"`+expiring.ID+`"`)

	p.asAdmin(t, "PUT", "/log-level", "warn")
	ids["silent"] = p.get(t, "?path=/v1/me", key.Key).header.Get("X-Request-Id")
	p.asAdmin(t, "PUT", "/log-level", "info")
	ids["guessed"] = p.get(t, "?path=/v1/me", key.Key[:len(key.Key)-6]+"000000").header.Get("X-Request-Id")
	order("created", key.Key, testRun)
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/v1/runs?limit=0", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+key.Key)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	w, err := client.Do(r)
	must(t, err)
	w.Body.Close()
	ids["traced"] = w.Header.Get("X-Request-Id")
	for _, k := range []string{key.Key, narrow.Key, revoked.Key} { // where no key belongs
		p.get(t, "?path=/v1/me&api_key="+k, "aiv_live_wrong")
		p.get(t, "?path=/v1/"+k, k)
		p.get(t, "/"+k, k)
		order(k[9:], k, strings.Replace(testRun, `"m"`, `"`+k+`"`, 1))
	}
	page := p.metrics(t)
	storetest.Exec(t, pool, `ALTER TABLE provider_dependencies RENAME TO gone`)
	p.hasMetrics(t, "aiv_database_up 0")
	storetest.Exec(t, pool, `ALTER TABLE gone RENAME TO provider_dependencies`)
	stops(t, p) // and so has written all lines
	checkLog(t, p.log.String(), ids, account, key.ID)
	for _, k := range []string{key.Key, narrow.Key, revoked.Key} {
		secret := k[len("aiv_live_")+8:]
		if tables := storetest.TablesWith(t, pool, secret); tables != nil || strings.Contains(p.log.String()+page, secret) {
			t.Errorf("a key is in the log, in the metrics, or in the tables %v", tables)
		}
	}
}

// checkLog checks the lines of requests, by their names.
func checkLog(t *testing.T, log string, ids map[string]string, account, credential string) {
	t.Helper()
	lines := make(map[string]map[string]any)
	for text := range strings.Lines(log) {
		var line map[string]any
		must(t, json.Unmarshal([]byte(text), &line))
		lines[fmt.Sprint(line["request_id"])] = line
	}
	if line, ok := lines[ids["silent"]]; ok {
		t.Errorf("logged at the level warn: %v", line)
	}
	for name, want := range map[string]map[string]any{
		"revoked": {"status": 401.0},
		"guessed": {"status": 401.0, "round_trips": 0.0, "code": "invalid_api_key", "account": nil, "credential": nil},
		"created": {"method": "POST", "route": "POST /v1/runs", "status": 202.0, "round_trips": 2.0,
			"account": account, "credential": credential},
		"traced": {"route": "GET /v1/runs", "status": 400.0, "round_trips": 1.0, "code": "invalid_parameter",
			"account": account, "trace_id": "0af7651916cd43dd8448eb211c80319c", "parent_id": "b7ad6b7169203331"},
	} {
		line := lines[ids[name]]
		for member, value := range want {
			if got := line[member]; got != value {
				t.Errorf("%s: %s is %v, want %v", name, member, got, value)
			}
		}
		if us, _ := line["us"].(float64); line["status"] == 401.0 && us < 100_000 {
			t.Errorf("%s: a 401 without its delay: %v", name, line)
		}
	}
}
