package worker_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"aiv/runs/jobs"
	"aiv/runs/results"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// TestJobIsClaimedRenewedAndSettled: jobs are claimed, renewed and settled; the answer is what results show.
func TestJobIsClaimedRenewedAndSettled(t *testing.T) {
	s := newSite(t)
	account, run := s.createRun(t, 2, 2)
	began := time.Now()
	claimed := s.claim(t, 10)
	if len(claimed) != 4 {
		t.Fatalf("%d jobs were claimed", len(claimed))
	}
	var held int
	must(t, s.pool.QueryRow(t.Context(), `SELECT sum(last_ordinal - ordinal + 1) FROM job_leases JOIN workers ON workers.id = worker_id`).Scan(&held))
	if held != 4 {
		t.Errorf("%d leases are of the worker, want 4", held)
	}
	j := claimed[3]
	id := j["id"].(string)
	until, err := time.Parse(time.RFC3339Nano, j["lease_until"].(string))
	if err != nil || until.Sub(began) < 59*time.Second || time.Until(until) > 61*time.Second {
		t.Errorf("the lease ends at %s, %v", until, err)
	}
	delete(j, "lease_until")
	want := map[string]any{
		"id": jobs.Key{Account: account, Run: run, Ordinal: 4}.String(), "attempt": 1.0, "account_id": account.Text("acct"), "run_id": run.Text("run"),
		"measurement_type": "grounded", "methodology_version": "AIVM-1.0",
		"model":      map[string]any{"id": "m1", "provider": "p1", "provider_model": "model-1"},
		"question":   map[string]any{"id": "q2", "text": `Question "2"?`, "language": "it", "country": "IT"},
		"repetition": 2.0, "locale": "it-IT", "country": "IT", "language": "it",
	}
	if diff := cmp.Diff(want, j); diff != "" {
		t.Errorf("the job (-want +got):\n%s", diff)
	}

	r := s.post(t, "heartbeat", map[string]any{"lease_seconds": 900, "jobs": []any{
		map[string]any{"id": id, "attempt": 1}, map[string]any{"id": "job_0", "attempt": 1}, map[string]any{"id": "?", "attempt": 99999}}})
	states := r.body["jobs"].([]any)
	if first := states[0].(map[string]any); first["state"] != "held" || first["lease_until"] == nil || first["id"] != id {
		t.Errorf("renewed: %v", first)
	}
	if diff := cmp.Diff([]any{map[string]any{"id": "job_0", "attempt": 1.0, "state": "lost", "lease_until": nil},
		map[string]any{"id": "?", "attempt": 99999.0, "state": "lost", "lease_until": nil}}, states[1:]); diff != "" {
		t.Error(diff)
	}

	answer := `{"text":"Ciao \"a\"\n\u0001","citations":[{"url":"https://user@WWW.Bücher.example:8443/x?y#z","title":null},{"url":"http://www.com./","title":"<b>"}],` +
		`"search_queries":["scarpe"],"model_version":null,"answered_at":"2026-01-02T03:04:05.123456789+02:00",` +
		`"searched":true,"truncated":true,"usage":{"searches":0,"input_tokens":1000000000,"output_tokens":null}}`
	r = s.post(t, "settle", `{"jobs":[{"id":"`+id+`","attempt":1,"outcome":"completed","answer":`+answer+`},`+
		`{"id":"`+claimed[0]["id"].(string)+`","attempt":1,"outcome":"failed","error":{"code":"content_refused","message":""}},`+
		`{"id":"`+claimed[1]["id"].(string)+`","attempt":1,"outcome":"retry","error":{"code":"provider_timeout","message":"x"},"after_seconds":3600},`+
		`{"id":"`+claimed[2]["id"].(string)+`","attempt":1,"outcome":"throttled","after_seconds":null}]}`)
	if r.status != 200 || strings.Count(r.raw, `"state":"settled"`) != 4 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	page, _, err := results.List(t.Context(), s.pool, account, run, results.Filter{Statuses: []string{"completed"}}, 0, 10)
	must(t, err)
	const shown = `{"text":"Ciao \"a\"\n\u0001","citations":[{"position":1,"url":"https://user@WWW.Bücher.example:8443/x?y#z","domain":"xn--bcher-kva.example","title":null},` +
		`{"position":2,"url":"http://www.com./","domain":"www.com","title":"<b>"}],"search_queries":["scarpe"],"model_version":null,"answered_at":"2026-01-02T01:04:05.123456Z",` +
		`"searched":true,"truncated":true,"usage":{"input_tokens":1000000000,"output_tokens":null,"searches":0}}`
	if diff := cmp.Diff(shown, string(page[0].Answer.AppendStored(nil))); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedRequestChangesNothing: what is refused, with which code and pointers, and that nothing changes.
func TestRefusedRequestChangesNothing(t *testing.T) {
	s := newSite(t)
	s.createRun(t, 100, 10)
	id := s.claim(t, 1)[0]["id"].(string)
	completed := func(answer string) string {
		return `{"jobs":[{"id":"` + id + `","attempt":1,"outcome":"completed","answer":` + answer + `}]}`
	}
	citation := func(c string) string {
		return completed(`{"text":"","citations":[` + c + `],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}`)
	}
	at := func(time string) string {
		return completed(`{"text":"","citations":[],"search_queries":[],"model_version":null,"answered_at":"` + time + `"}`)
	}
	more := func(members string) string {
		return completed(`{"text":"","citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z",` + members + `}`)
	}
	ahead := time.Now().Add(6 * time.Minute).UTC().Format(time.RFC3339)
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for _, test := range []struct{ route, body, code, pointers string }{
		{"claim", ``, "invalid_json", ""},
		{"claim", `{"limit":1,"limit":1}`, "invalid_json", ""},
		{"claim", `[]`, "invalid_request", "#"},
		{"claim", `{}`, "invalid_request", "#/limit #/lease_seconds #/providers #/wait_seconds"},
		{"claim", `{"limit":0,"lease_seconds":9,"providers":"p1","wait_seconds":31,"more":1}`, "invalid_request",
			"#/more #/limit #/lease_seconds #/providers #/wait_seconds"},
		{"claim", `{"limit":501,"lease_seconds":901,"providers":[1],"wait_seconds":-1}`, "invalid_request",
			"#/limit #/lease_seconds #/providers/0 #/wait_seconds"},
		{"claim", `{"limit":1,"lease_seconds":60,"providers":[` + many(501, `"p1"`) + `],"wait_seconds":0}`, "invalid_request", "#/providers"},
		{"claim", `{"limit":1.0,"lease_seconds":"60","providers":null,"wait_seconds":null}`, "invalid_request", "#/limit #/lease_seconds #/wait_seconds"},
		{"heartbeat", `{"lease_seconds":60,"jobs":[]}`, "invalid_request", "#/jobs"},
		{"heartbeat", `{"lease_seconds":60,"jobs":[` + many(501, `{}`) + `]}`, "invalid_request", "#/jobs"},
		{"heartbeat", `{"lease_seconds":60,"jobs":[{"id":"a","attempt":1},{"id":"a","attempt":2},{"id":1,"attempt":0,"outcome":"released"},null]}`, "invalid_request",
			"#/jobs/1/id #/jobs/2/outcome #/jobs/2/id #/jobs/2/attempt #/jobs/3"},
		{"settle", `{"jobs":{}}`, "invalid_request", "#/jobs"},
		{"settle", `{"jobs":[{"id":"a","attempt":1,"answer":{}},{"id":"a","attempt":0,"outcome":"done","answr":1},{"outcome":1,"error":null},7]}`, "invalid_request",
			"#/jobs/0/outcome #/jobs/1/answr #/jobs/1/outcome #/jobs/1/attempt #/jobs/1/id #/jobs/2/id #/jobs/2/attempt #/jobs/2/outcome #/jobs/3"},
		{"settle", `{"jobs":[{"id":"a","attempt":1,"outcome":"released"},{"id":"a","attempt":1,"outcome":"released","after_seconds":1}]}`, "invalid_request",
			"#/jobs/1/after_seconds #/jobs/1/id"},
		{"settle", `{"jobs":[{"id":"a","attempt":1,"outcome":"throttled","after_seconds":0},{"id":"b","attempt":1,"outcome":"throttled","after_seconds":3601},{"id":"c","attempt":1,"outcome":"throttled"}]}`,
			"invalid_request", "#/jobs/0/after_seconds #/jobs/1/after_seconds #/jobs/2/after_seconds"},
		{"settle", `{"jobs":[{"id":"a","attempt":1,"outcome":"failed"},{"id":"b","attempt":1,"outcome":"failed","error":null},` +
			`{"id":"c","attempt":1,"outcome":"failed","error":{"code":"A","message":null}},` +
			`{"id":"d","attempt":1,"outcome":"retry","error":{"code":"` + strings.Repeat("a", 65) + `","message":"` + strings.Repeat("é", 2049) + `"},"after_seconds":null}]}`,
			"invalid_request", "#/jobs/0/error #/jobs/1/error #/jobs/2/error/code #/jobs/2/error/message #/jobs/3/error/code #/jobs/3/error/message"},
		{"settle", completed(`null`), "invalid_request", "#/jobs/0/answer"},
		{"settle", completed(`{}`), "invalid_request", "#/jobs/0/answer/text #/jobs/0/answer/citations #/jobs/0/answer/search_queries #/jobs/0/answer/model_version #/jobs/0/answer/answered_at"},
		{"settle", completed(`{"text":"` + strings.Repeat("é", 128<<10) + `.","citations":[` + many(101, `0`) + `],"search_queries":[` + many(51, `0`) + `],"model_version":"` +
			strings.Repeat("v", 129) + `","answered_at":"now"}`), "invalid_request",
			"#/jobs/0/answer/text #/jobs/0/answer/citations #/jobs/0/answer/search_queries #/jobs/0/answer/model_version #/jobs/0/answer/answered_at"},
		{"settle", completed(`{"text":1,"citations":[],"search_queries":[1,"` + strings.Repeat("q", 513) + `"],"model_version":1,"answered_at":1}`), "invalid_request",
			"#/jobs/0/answer/text #/jobs/0/answer/search_queries/0 #/jobs/0/answer/search_queries/1 #/jobs/0/answer/model_version #/jobs/0/answer/answered_at"},
		{"settle", citation(`{"url":"ftp://example.org","title":null},{"url":"https://","title":1},{"url":"https://a/` + strings.Repeat("x", 2048) + `","title":"` +
			strings.Repeat("t", 513) + `"},{"url":"example.org","title":""},{"title":null},1`), "invalid_request",
			"#/jobs/0/answer/citations/0/url #/jobs/0/answer/citations/1/url #/jobs/0/answer/citations/1/title #/jobs/0/answer/citations/2/url " +
				"#/jobs/0/answer/citations/2/title #/jobs/0/answer/citations/3/url #/jobs/0/answer/citations/4/url #/jobs/0/answer/citations/5"},
		{"settle", more(`"searched":1,"truncated":null,"usage":[],"cost":1`), "invalid_request",
			"#/jobs/0/answer/cost #/jobs/0/answer/searched #/jobs/0/answer/truncated #/jobs/0/answer/usage"},
		{"settle", more(`"usage":{}`), "invalid_request",
			"#/jobs/0/answer/usage/input_tokens #/jobs/0/answer/usage/output_tokens #/jobs/0/answer/usage/searches"},
		{"settle", more(`"usage":{"input_tokens":-1,"output_tokens":1000000001,"searches":1.5,"pages":1}`), "invalid_request",
			"#/jobs/0/answer/usage/pages #/jobs/0/answer/usage/input_tokens #/jobs/0/answer/usage/output_tokens #/jobs/0/answer/usage/searches"},
		{"settle", at(ahead), "invalid_request", "#/jobs/0/answer/answered_at"},
		{"settle", at("2026-01-01 00:00:00Z"), "invalid_request", "#/jobs/0/answer/answered_at"},
		{"settle", at("0001-01-01T00:00:00+01:00"), "invalid_request", "#/jobs/0/answer/answered_at"},
		{"settle", `"` + strings.Repeat("x", 8<<20) + `"`, "body_too_large", ""},
		{"settle", `[` + many(1_000_000, `0`) + `]`, "invalid_json", ""},
	} {
		r := s.post(t, test.route, test.body)
		var pointers []string
		all, _ := r.body["errors"].([]any)
		for _, e := range all {
			pointers = append(pointers, e.(map[string]any)["pointer"].(string))
		}
		if got := strings.Join(pointers, " "); r.body["code"] != test.code || got != test.pointers {
			t.Errorf("%s %.200s\n got %v %s\nwant %s %s", test.route, test.body, r.body["code"], got, test.code, test.pointers)
		}
	}
	if r := s.post(t, "settle", at(time.Now().Add(4*time.Minute).UTC().Format(time.RFC3339))); r.status != 200 || !strings.Contains(r.raw, `"settled"`) {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestRequestsAtBoundsAreAccepted: requests at the bounds of their members are accepted.
func TestRequestsAtBoundsAreAccepted(t *testing.T) {
	s := newSite(t)
	s.createRun(t, 1, 1)
	r := s.post(t, "claim", `{"limit":500,"lease_seconds":10,"providers":null,"wait_seconds":0}`)
	if strings.Count(r.raw, `"attempt":1`) != 1 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	id := r.body["jobs"].([]any)[0].(map[string]any)["id"].(string)
	list := func(n int, item func(i int) string) string {
		var items []string
		for i := range n {
			items = append(items, item(i))
		}
		return strings.Join(items, ",")
	}
	r = s.post(t, "heartbeat", `{"lease_seconds":10,"jobs":[{"id":"`+id+`","attempt":1},`+list(499, func(i int) string {
		return fmt.Sprintf(`{"id":"%d","attempt":2147483647}`, i)
	})+`]}`)
	if strings.Count(r.raw, `"held"`) != 1 || strings.Count(r.raw, `"lost"`) != 499 {
		t.Errorf("heartbeat: %d %.300s", r.status, r.raw)
	}
	long := strings.NewReplacer("CODE", "a"+strings.Repeat("9", 63), "MESSAGE", strings.Repeat("é", 2048), "TEXT", strings.Repeat("é", 128<<10),
		"URL", "https://a.b/"+strings.Repeat("é", 2036), "TITLE", strings.Repeat("é", 512), "QUERY", strings.Repeat("é", 512), "VERSION", strings.Repeat("é", 128))
	r = s.post(t, "settle", long.Replace(`{"jobs":[{"id":"`+id+`","attempt":1,"outcome":"completed","answer":{"text":"TEXT","citations":[`+
		list(100, func(int) string { return `{"url":"URL","title":"TITLE"}` })+`],"search_queries":[`+list(50, func(int) string { return `"QUERY"` })+
		`],"model_version":"VERSION","answered_at":"0001-01-01T00:00:00Z"}},`+
		`{"id":"a","attempt":1,"outcome":"retry","error":{"code":"CODE","message":"MESSAGE"},"after_seconds":3600},`+
		`{"id":"b","attempt":1,"outcome":"throttled","after_seconds":1},`+
		list(497, func(i int) string { return fmt.Sprintf(`{"id":"%d","attempt":2147483647,"outcome":"released"}`, i) })+`]}`))
	if strings.Count(r.raw, `"settled"`) != 1 || strings.Count(r.raw, `"stale"`) != 499 {
		t.Errorf("settle: %d %.300s", r.status, r.raw)
	}
}

// TestRefusedBeforeTheBodyIsRead: what is refused before a route reads its body, such as requests with a token that was
// revoked since its last request. Every 401 takes guessDelay at least.
func TestRefusedBeforeTheBodyIsRead(t *testing.T) {
	s := newSite(t)
	s.claim(t, 1)
	revoked, err := s.admin.Workers(t.Context())
	must(t, err)
	old := s.token
	s.token = s.worker(t)
	_, err = s.admin.RevokeWorker(t.Context(), revoked[0].ID)
	must(t, err)
	const plain, auth = "Content-Type", "Authorization"
	for _, test := range []struct {
		method, path, body string
		header             []string
		status             int
		code               string
	}{
		{"POST", "/worker/v1/claim", "{}", nil, 401, "missing_credentials"},
		{"POST", "/worker/v1/claim", "{}", []string{auth, "Basic x"}, 401, "missing_credentials"},
		{"POST", "/worker/v1/claim", "{}", []string{auth, "Bearer aiv_work_x"}, 401, "invalid_api_key"},
		{"POST", "/worker/v1/claim", "{}", []string{auth, "Bearer " + old}, 401, "invalid_api_key"},
		{"POST", "/worker/v1/heartbeat", "{}", []string{auth, "Bearer " + old}, 401, "invalid_api_key"},
		{"POST", "/worker/v1/settle?x=1", "{", []string{auth, "Bearer " + old}, 401, "invalid_api_key"},
		{"POST", "/worker/v1/claim", "{}", []string{auth, "Bearer " + s.token, auth, "Bearer " + s.token}, 401, "invalid_api_key"},
		{"GET", "/nowhere", "", nil, 401, "missing_credentials"},
		{"GET", "/nowhere", "", []string{auth, "Bearer " + s.token}, 404, "route_not_found"},
		{"POST", "/worker/v1/claim/", "{}", []string{auth, "Bearer " + s.token}, 404, "route_not_found"},
		{"GET", "/worker/v1/claim", "", []string{auth, "Bearer " + s.token}, 405, "method_not_allowed"},
		{"POST", "/worker/v1/claim", "{}", []string{auth, "Bearer " + s.token}, 415, "unsupported_media_type"},
		{"POST", "/worker/v1/claim", "{}", []string{auth, "bearer  " + s.token, plain, "application/json; charset=UTF-8"}, 400, "invalid_request"},
		{"POST", "/worker/v1/claim", "{}", []string{auth, "Bearer " + s.token, plain, "application/json", "Content-Encoding", "gzip"}, 415, "unsupported_media_type"},
	} {
		began := time.Now()
		r := s.send(t, test.method, test.path, test.body, test.header...)
		if took := time.Since(began); r.status == 401 && took < guessDelay {
			t.Errorf("%s %s %v: 401 after %v", test.method, test.path, test.header, took)
		}
		if r.status != test.status || r.body["code"] != test.code || r.body["request_id"] != r.header.Get("X-Request-Id") {
			t.Errorf("%s %s %v: %d %s", test.method, test.path, test.header, r.status, r.raw)
		}
		challenge := r.header.Get("WWW-Authenticate")
		if (test.status == 401) != strings.HasPrefix(challenge, `Bearer realm="worker"`) || (test.code == "invalid_api_key") != strings.Contains(challenge, "invalid_token") {
			t.Errorf("%s: %s", test.code, challenge)
		}
		if (test.status == 405) != (r.header.Get("Allow") == "POST") {
			t.Errorf("Allow: %s", r.header.Get("Allow"))
		}
	}
}

// TestTokenSeesItsProvidersOnly: a token with providers gets, renews and settles jobs of those only.
func TestTokenSeesItsProvidersOnly(t *testing.T) {
	s := newSite(t)
	s.createRun(t, 3, 1)
	claims := func(providers string, want int) {
		t.Helper()
		r := s.post(t, "claim", `{"limit":1,"lease_seconds":60,"providers":`+providers+`,"wait_seconds":0}`)
		if got := strings.Count(r.raw, `"attempt":1`); r.status != 200 || got != want {
			t.Errorf("a claim of %.20s: %d %s, want %d jobs", providers, r.status, r.raw, want)
		}
	}
	list := func(provider string) string {
		return "[" + strings.Repeat(`"`+provider+`",`, 499) + `"` + provider + `"]`
	}
	claims(list("p1"), 1)
	for _, providers := range []string{list("p2"), `[]`, `["none"]`} {
		claims(providers, 0)
	}
	id := s.claim(t, 1)[0]["id"]
	tokens := map[string]string{"p1": s.worker(t, "p1"), "p2": s.worker(t, "p2")}
	s.token = tokens["p2"]
	claims("null", 0)
	for _, step := range []struct{ provider, state string }{
		{"p2", "stale"}, {"p1", "settled"}, {"p1", "settled"}, {"p2", "stale"},
	} {
		s.token = tokens[step.provider]
		r := s.post(t, "settle", fmt.Sprintf(`{"jobs":[{"id":"%s","attempt":1,"outcome":"released"}]}`, id))
		if !strings.Contains(r.raw, `"`+step.state+`"`) {
			t.Errorf("settled by a worker of %s: %s, want %s", step.provider, r.raw, step.state)
		}
	}
}

// TestLeavingClient: a client that leaves while its claim waits gets no job.
func TestLeavingClient(t *testing.T) {
	s := newSite(t)
	s.run(t)
	c, err := net.Dial("tcp", s.server.Listener.Addr().String())
	must(t, err)
	const body = `{"limit":1,"lease_seconds":60,"providers":null,"wait_seconds":30}`
	fmt.Fprintf(c, "POST /worker/v1/claim HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		s.token, len(body), body)
	s.waiting(t, 1)
	c.Close()
	s.waiting(t, 0)
	s.createRun(t, 1, 1)
	r := s.post(t, "claim", body)
	if n := len(r.body["jobs"].([]any)); n != 1 {
		t.Errorf("the next client got %d jobs", n)
	}
}

// TestRevokedWhileWaiting: a claim whose token is revoked while it waits gets 401 and no job; another worker gets it.
func TestRevokedWhileWaiting(t *testing.T) {
	s := newSite(t)
	s.run(t)
	const body = `{"limit":1,"lease_seconds":60,"providers":null,"wait_seconds":30}`
	all, err := s.admin.Workers(t.Context())
	must(t, err)
	revoked := make(chan reply, 1)
	go func() { revoked <- s.post(t, "claim", body) }()
	s.waiting(t, 1)
	_, err = s.admin.RevokeWorker(t.Context(), all[0].ID)
	must(t, err)
	s.createRun(t, 1, 1)
	if r := <-revoked; r.status != 401 || r.body["code"] != "invalid_api_key" || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("the claim of a revoked worker: %d %s", r.status, r.raw)
	}
	s.token = s.worker(t)
	if claimed := s.claim(t, 1); len(claimed) != 1 || claimed[0]["attempt"] != 1.0 {
		t.Errorf("another worker got %v", claimed)
	}
}

// beginSettling sends part of a body, which consists of spaces, unless the server rejects the request before.
func (s *site) beginSettling(t *testing.T, length, sent int) (c net.Conn, accepted bool) {
	t.Helper()
	c, err := net.Dial("tcp", s.server.Listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /worker/v1/settle HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", s.token, length)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(t, err)
	if r.StatusCode != http.StatusContinue {
		return c, false
	}
	io.WriteString(c, strings.Repeat(" ", sent))
	return c, true
}

// TestSlowBodies: clients that send large bodies slowly do not keep others from claiming and settling. A large request
// is refused while they have the memory, and served when they have got 503 and their connections are closed.
func TestSlowBodies(t *testing.T) {
	s := newSite(t)
	s.createRun(t, 1, 1)
	large := strings.Repeat(" ", 4<<20) + "{}"
	var slow []net.Conn
	refused := s.post(t, "settle", large)
	for n := 0; refused.status == 400; n++ {
		if n == 400 {
			t.Fatalf("%d slow bodies take up no memory", n)
		}
		if c, accepted := s.beginSettling(t, 8<<20, 2<<20); accepted {
			slow = append(slow, c)
		}
		refused = s.post(t, "settle", large)
	}
	if refused.status != 503 || refused.body["code"] != "overloaded" || refused.header.Get("Retry-After") != "1" {
		t.Errorf("a large settlement: %d %s, Retry-After %s", refused.status, refused.raw, refused.header.Get("Retry-After"))
	}
	claimed := s.claim(t, 1)
	if r := s.post(t, "settle", fmt.Sprintf(`{"jobs":[{"id":"%s","attempt":1,"outcome":"released"}]}`, claimed[0]["id"])); r.status != 200 {
		t.Errorf("a small settlement: %d %s", r.status, r.raw)
	}
	storetest.Eventually(t, "a large settlement is read", func() bool { return s.post(t, "settle", large).status == 400 })
	must(t, slow[0].SetReadDeadline(time.Now().Add(storetest.Patience)))
	buffered := bufio.NewReader(slow[0])
	r, err := http.ReadResponse(buffered, nil)
	must(t, err)
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 503 || r.Header.Get("Retry-After") != "1" || !r.Close || !strings.Contains(string(body), `"code":"unavailable"`) {
		t.Errorf("the response to a slow body: %d, Retry-After %s, close %v: %s, %v", r.StatusCode, r.Header.Get("Retry-After"), r.Close, body, err)
	}
	if _, err := buffered.ReadByte(); err != io.EOF {
		t.Errorf("after the response: %v, want the end of the connection", err)
	}
}
