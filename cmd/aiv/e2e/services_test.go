package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestRightsOfTheRole: a service does not start as the role of the other one. As the roles that aiv migrate has made for
// them, aiv serve and aiv dispatch have a run claimed, settled and completed, and a claim that waits gets its response
// when the dispatcher ends. aiv serve is not ready when its role loses a right. The golden files send each request to
// services with such roles, and TestLeastPrivilege of gateway shows what these roles cannot do.
func TestRightsOfTheRole(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t)
	serve, quoted := storetest.NewRole(t, pool, "-serve")
	dispatch, _ := storetest.NewRole(t, pool, "-dispatch")
	cli[any](t, url, "migrate", "-grant", serve, "-grant-dispatch", dispatch)
	as := func(role string) string { return strings.Replace(url, "user=aiv", "user="+role, 1) }
	refuses(t, as(dispatch), "lacks privileges that aiv serve needs: SELECT ON credentials, SELECT ON identity_revision, ",
		onFreePorts("serve")...)
	refuses(t, as(serve), "lacks privileges that aiv dispatch needs: ", onFreePorts("dispatch")...)
	cli[any](t, url, "providers", "set", "p", "-per-minute", "1000")
	p, d := startServe(t, as(serve)), startDispatch(t, as(dispatch), "-answers-kept", "400d", "-drain", "29s")
	w := newWorkerClient(t, url, d)
	d.hasMetrics(t, `aiv_jobs_claimed_total{provider="p"} 0`) // before the first claim
	run := p.order(t, key.Key, "roles")
	w.claims(t, 2) // which come back when their leases end
	endLeases(t, pool)
	first := w.claims(t, 4)
	p.lists(t, key.Key, run, "running")
	rest := w.claims(t, 2)
	for range 2 { // the second time changes nothing
		w.settles(t, first)
		w.settles(t, rest)
	}
	p.lists(t, key.Key, run, "completed")
	p.hasMetrics(t, "aiv_database_up 1") // the roles may read what /metrics reports
	d.hasMetrics(t, "aiv_database_up 1", "aiv_webhook_pending 0", `aiv_jobs_waiting{provider="p"} 0`, `aiv_jobs_leased{provider="p"} 0`,
		`aiv_jobs_claimed_total{provider="p"} 8`, `aiv_jobs_settled_total{provider="p",outcome="completed"} 6`,
		`aiv_requests_total{route="POST /worker/v1/settle",status="200"} 4`, `aiv_task_runs_total{task="end_leases",result="failed"} 0`)
	d.documentsMetrics(t)

	leaving, leave := context.WithCancel(t.Context())
	go w.post(leaving, "/claim", `{"providers":null,"limit":1,"wait_seconds":30,"lease_seconds":600}`)
	d.hasMetrics(t, "aiv_claims_waiting 1")
	leave()
	d.awaitLog(t, `"route":"POST /worker/v1/claim","status":0,`)
	// The claim would wait for longer than -drain, and then the dispatcher would end with an error.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if jobs, err := w.claim("null", 1, 30, 600); err != nil || len(jobs) != 0 {
			t.Errorf("a claim that waited at the end: %v, %v", jobs, err)
		}
	}()
	d.hasMetrics(t, "aiv_claims_waiting 1")
	stops(t, d)
	<-ended
	if strings.Contains(d.log.String(), "permission denied") {
		t.Error("aiv dispatch lacks a privilege")
	}

	storetest.Exec(t, pool, `REVOKE SELECT ON plans FROM `+quoted)
	p.isReady(t, "of a role without a privilege", 503, "SELECT ON plans")
	storetest.Exec(t, pool, `GRANT SELECT ON plans TO `+quoted)
	p.isReady(t, "of a role with all privileges", 200, "ok")
}

// TestUpgradeUnderAProcess: a newer binary's migration is applied while a process serves. It stays ready. A new
// process of the older binary starts only if the migration declares it compatible.
func TestUpgradeUnderAProcess(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t)
	p := startServe(t, url)
	storetest.Exec(t, pool, `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'what_is_to_come', sha256(''))`)
	p.isReady(t, "after the migration", 200, "ok")
	p.serves(t, key.Key)
	refuses(t, url, "", onFreePorts("serve")...)
	storetest.Exec(t, pool, `
		UPDATE schema_migrations SET oldest_compatible = (SELECT max(version) FROM schema_migrations WHERE version < 9999) WHERE version = 9999`)
	startServe(t, url).isReady(t, "of the older binary on a compatible schema", 200, "ok")
	storetest.Exec(t, pool, `DELETE FROM schema_migrations WHERE version = 9999`)
}

// documentsMetrics fails the test unless each family on the page of metrics comes once, and OPERATING.md explains it.
func (p *process) documentsMetrics(t *testing.T) {
	t.Helper()
	operating, err := os.ReadFile("../OPERATING.md")
	must(t, err)
	families := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (?:counter|gauge|histogram)$`).FindAllStringSubmatch(p.metrics(t), -1) {
		if families[m[1]] || !strings.Contains(string(operating), "`"+m[1]+"`") {
			t.Errorf("%s comes twice, or OPERATING.md does not explain it", m[1])
		}
		families[m[1]] = true
	}
	if len(families) < 20 {
		t.Errorf("the page has %d families", len(families))
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
	made := cli[madeKey](t, url, "keys", "create", "-account", account, "-name", "short", "-scopes", "runs:read", "-expires",
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	p := startServe(t, url)
	ids := make(map[string]string) // of requests
	note := func(name string, header http.Header) { ids[name] = header.Get("X-Request-Id") }
	order := func(name, key, body string) {
		t.Helper()
		a, err := p.do(t.Context(), "POST", "", key, name, body)
		must(t, err)
		note(name, a.header)
	}
	order("first", key.Key, testRun) // which reads the catalog
	order("first", key.Key, testRun)
	order("first", key.Key, strings.Replace(testRun, `"repetitions":3`, `"repetitions":2`, 1))
	order("refused", key.Key, strings.Replace(testRun, `"m"`, `"unknown"`, 1))
	note("revoked", p.get(t, "?path=/v1/me", revoked.Key).header)
	admitted := 0
	for p.get(t, "?path=/v1/me", narrow.Key).status == 200 {
		admitted++ // one a minute
	}
	processors := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		processors = max(1, processors-1) // one is left to the database on this machine
	}
	p.hasMetrics(t, strings.Split(strings.TrimSpace(fmt.Sprintf(`
aiv_requests_total{route="GET /v1/me",status="200"} %d
aiv_limiter_decisions_total{decision="admitted"} %d
aiv_batch_size_sum{batcher="counts"} %d
go_sched_gomaxprocs_threads %d
aiv_request_seconds_count{route="POST /v1/runs"} 4
aiv_limiter_decisions_total{decision="refused"} 1
aiv_limiter_decisions_total{decision="unknown_key"} 1
aiv_run_requests_total{outcome="created"} 1
aiv_run_requests_total{outcome="replayed"} 1
aiv_run_requests_total{outcome="conflict"} 1
aiv_run_requests_total{outcome="refused"} 1
aiv_jobs_created_total 6
aiv_batch_size_sum{batcher="small_runs"} 3
aiv_keys_expiring 1
aiv_queue_open_runs 1
aiv_provider_dependency_unmet{provider="p",dependency="contract"} 0
`, admitted, 4+admitted, 5+admitted, processors)), "\n")...)
	p.documentsMetrics(t)
	p.awaitLog(t, `"a key expires soon","credential":"`+made.ID+`"`)

	p.asAdmin(t, "PUT", "/log-level", "warn")
	note("silent", p.get(t, "?path=/v1/me", key.Key).header)
	p.asAdmin(t, "PUT", "/log-level", "info")
	note("guessed", p.get(t, "?path=/v1/me", key.Key[:len(key.Key)-6]+"000000").header)
	order("created", key.Key, testRun)
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/v1/runs?limit=0", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+key.Key)
	r.Header.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	w, err := client.Do(r)
	must(t, err)
	w.Body.Close()
	note("traced", w.Header)
	keys := []string{key.Key, narrow.Key, revoked.Key, made.Key}
	for _, k := range keys[:3] { // where no key belongs
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
	lines := make(map[string]map[string]any)
	for text := range strings.Lines(p.log.String()) {
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
		"created": {"method": "POST", "route": "POST /v1/runs", "status": 202.0, "round_trips": 2.0, "account": account, "credential": key.ID},
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
	for _, k := range keys {
		prefix, secret := k[:len("aiv_live_")+8], k[len("aiv_live_")+8:]
		tables := storetest.TablesWith(t, pool, secret)
		if tables != nil || strings.Contains(p.log.String()+page, secret) || storetest.TablesWith(t, pool, prefix) == nil {
			t.Errorf("a key is in the log, in the metrics, or in the tables %v, or the search does not find its prefix", tables)
		}
	}
}
