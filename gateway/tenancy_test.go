package gateway_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
	"aiv/store/storetest"
)

// ask sends a request to the gateway in-process.
func ask(g *gateway.Gateway, key, method, address, body string) *httptest.ResponseRecorder {
	return askWith(g, key, "tenancy", method, address, body)
}

func askWith(g *gateway.Gateway, key, idempotencyKey, method, address, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, gateway.Base+address, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", idempotencyKey)
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

// TestNoRouteShowsOtherAccounts asks every route for rows of another account, by each id and filter that could name them, and for rows
// that do not exist. The responses must be the same but for the request's id, and so must the statements that
// PostgreSQL ran.
func TestNoRouteShowsOtherAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	seen := &storetest.Statements{}
	f.pool = storetest.WithTracer(t, f.pool, seen)
	g := f.gateway(io.Discard)
	mine, theirs := f.keys["full"], f.keys["other"]

	const run = `{"model_ids":["golden/all"],"question_ids":["QUESTION"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`
	made := ask(g, theirs, "POST", "/v1/runs", strings.Replace(run, "QUESTION", "golden-q4", 1))
	if made.Code != http.StatusAccepted {
		t.Fatal(made.Body)
	}
	var theirRun struct{ ID string }
	must(t, json.Unmarshal(made.Body.Bytes(), &theirRun))
	_, err := f.pool.Exec(t.Context(), `UPDATE alerts SET run_id = (SELECT id FROM measurement_runs WHERE account_id = $1 LIMIT 1) WHERE account_id = $1`, f.accounts["golden other"])
	must(t, err)
	_, err = f.pool.Exec(t.Context(), `UPDATE recommendations SET run_id = (SELECT id FROM measurement_runs WHERE account_id = $1 LIMIT 1) WHERE account_id = $1`, f.accounts["golden other"])
	must(t, err)
	const unknown, unknownBrand = "run_01k00000000000000000000000", "/v1/brands/brand_01k00000000000000000000000"
	made = ask(g, theirs, "POST", "/v1/brands", `{"kind":"own","name":"Kovalt","domains":["kovalt.example"]}`)
	if made.Code != http.StatusCreated {
		t.Fatal(made.Body)
	}
	var theirBrand struct{ ID string }
	must(t, json.Unmarshal(made.Body.Bytes(), &theirBrand))
	noBrand := strings.TrimPrefix(unknownBrand, "/v1/brands/")
	myRun := "/v1/runs/" + runIDs.FindString(ask(g, mine, "GET", "/v1/runs?limit=1", "").Body.String())
	draft := func(member, id string) string { return `{"kind":"own","name":"Ostrel","` + member + `":"` + id + `"}` }

	for _, tt := range []struct{ name, method, theirs, unknown, theirBody, unknownBody string }{
		{name: "a run", method: "GET", theirs: "/v1/runs/" + theirRun.ID, unknown: "/v1/runs/" + unknown},
		{name: "a run by the query form", method: "GET", theirs: "?path=/v1/runs/" + theirRun.ID, unknown: "?path=/v1/runs/" + unknown},
		{name: "the results of a run", method: "GET", theirs: "/v1/runs/" + theirRun.ID + "/results", unknown: "/v1/runs/" + unknown + "/results"},
		{name: "canceling a run", method: "POST", theirs: "/v1/runs/" + theirRun.ID + "/cancel", unknown: "/v1/runs/" + unknown + "/cancel", theirBody: "{}", unknownBody: "{}"},
		{name: "runs by id", method: "GET", theirs: "/v1/runs?id=" + theirRun.ID, unknown: "/v1/runs?id=" + unknown},
		{name: "alerts of a run", method: "GET", theirs: "/v1/alerts?run_id=" + theirRun.ID, unknown: "/v1/alerts?run_id=" + unknown},
		{name: "recommendations of a run", method: "GET", theirs: "/v1/recommendations?run_id=" + theirRun.ID, unknown: "/v1/recommendations?run_id=" + unknown},
		{name: "alerts of a type", method: "GET", theirs: "/v1/alerts?type=sentiment_shift", unknown: "/v1/alerts?type=citation_lost"},
		{name: "recommendations of a type", method: "GET", theirs: "/v1/recommendations?type=join_thread", unknown: "/v1/recommendations?type=none"},
		{name: "recommendations of a state", method: "GET", theirs: "/v1/recommendations?status=dismissed", unknown: "/v1/recommendations?status=accepted"},
		{name: "questions of a topic", method: "GET", theirs: "/v1/catalog/questions?topic=private", unknown: "/v1/catalog/questions?topic=none"},
		{name: "a brand", method: "GET", theirs: "/v1/brands/" + theirBrand.ID, unknown: unknownBrand},
		{name: "changing a brand", method: "PATCH", theirs: "/v1/brands/" + theirBrand.ID, unknown: unknownBrand, theirBody: `{"name":"Ostrel"}`,
			unknownBody: `{"name":"Ostrel"}`},
		{name: "previewing a brand", method: "POST", theirs: "/v1/brands/preview", unknown: "/v1/brands/preview",
			theirBody: draft("brand_id", theirBrand.ID), unknownBody: draft("brand_id", noBrand)},
		{name: "previewing a brand in a run", method: "POST", theirs: "/v1/brands/preview", unknown: "/v1/brands/preview",
			theirBody: draft("run_id", theirRun.ID), unknownBody: draft("run_id", unknown)},
		{name: "previewing the names of a brand", method: "POST", theirs: "/v1/brands/preview", unknown: "/v1/brands/preview",
			theirBody: `{"kind":"own","name":"Kovalt","domains":["kovalt.example"]}`, unknownBody: `{"kind":"own","name":"Kovalt","domains":["halden.example"]}`},
		{name: "the metrics of a run", method: "GET", theirs: "/v1/metrics?group_by=model&run_id=" + theirRun.ID, unknown: "/v1/metrics?group_by=model&run_id=" + unknown},
		{name: "the metrics of a brand", method: "GET", theirs: "/v1/metrics?brand_id=" + theirBrand.ID, unknown: "/v1/metrics?brand_id=" + noBrand},
		{name: "the sources of a run", method: "GET", theirs: "/v1/sources?level=url&run_id=" + theirRun.ID, unknown: "/v1/sources?level=url&run_id=" + unknown},
		{name: "the sources of a brand", method: "GET", theirs: "/v1/sources?brand_id=" + theirBrand.ID, unknown: "/v1/sources?brand_id=" + noBrand},
		{name: "the results that mention a brand", method: "GET", theirs: myRun + "/results?mentioned=true&brand_id=" + theirBrand.ID,
			unknown: myRun + "/results?mentioned=true&brand_id=" + noBrand},
		{name: "the results that do not cite a brand", method: "GET", theirs: myRun + "/results?cited=false&brand_id=" + theirBrand.ID,
			unknown: myRun + "/results?cited=false&brand_id=" + noBrand},
		{name: "a run that asks a question", method: "POST", theirs: "/v1/runs", unknown: "/v1/runs",
			theirBody: strings.Replace(run, "QUESTION", "golden-q4", 1), unknownBody: strings.Replace(run, "QUESTION", "golden-q0", 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ask(g, mine, tt.method, tt.unknown, tt.unknownBody) // so that no statement is prepared for the first time
			ask(g, mine, tt.method, tt.theirs, tt.theirBody)
			var answers, queries [2]string
			for i, address := range []string{tt.theirs, tt.unknown} {
				seen.Taken()
				w := ask(g, mine, tt.method, address, []string{tt.theirBody, tt.unknownBody}[i])
				answers[i], queries[i] = strip(w), texts(seen)
			}
			if strings.Count(queries[0], "\n") == 0 {
				t.Error("no statement was seen")
			}
			if tt.theirs == tt.unknown && tt.theirBody == tt.unknownBody {
				t.Error("the two requests are the same")
			}
			if diff := cmp.Diff(answers[1], answers[0]); diff != "" {
				t.Errorf("the responses differ (-unknown +theirs):\n%s", diff)
			}
			if diff := cmp.Diff(queries[1], queries[0]); diff != "" {
				t.Errorf("the statements differ (-unknown +theirs):\n%s", diff)
			}
			if strings.Contains(answers[0], theirRun.ID) {
				t.Errorf("the answer repeats the id: %s", answers[0])
			}
		})
	}

	t.Run("an idempotency key", func(t *testing.T) {
		body := strings.Replace(run, "QUESTION", "golden-q1", 1)
		if w := askWith(g, theirs, "theirs", "POST", "/v1/runs", body); w.Code != http.StatusAccepted {
			t.Fatal(w.Body)
		}
		ask(g, mine, "POST", "/v1/runs", body)
		var answers, queries [2]string
		for i, key := range []string{"theirs", "unused"} {
			seen.Taken()
			w := askWith(g, mine, key, "POST", "/v1/runs", body)
			if w.Code != http.StatusAccepted || w.Header()["Idempotent-Replayed"] != nil {
				t.Errorf("the key %s: got %d %s, replayed %s", key, w.Code, w.Body, w.Header()["Idempotent-Replayed"])
			}
			answers[i], queries[i] = runIDs.ReplaceAllString(strip(w), "run"), texts(seen)
		}
		if diff := cmp.Diff(answers[1], answers[0]); diff != "" {
			t.Errorf("the responses differ (-unused +theirs):\n%s", diff)
		}
		if diff := cmp.Diff(queries[1], queries[0]); diff != "" {
			t.Errorf("the statements differ (-unused +theirs):\n%s", diff)
		}
	})
	t.Run("a comparison", func(t *testing.T) {
		baseline := "&baseline_run_id=" + strings.TrimPrefix(myRun, "/v1/runs/")
		var answers, queries [2]string
		for i, id := range []string{theirRun.ID, unknown} {
			ask(g, mine, "GET", "/v1/metrics/compare?run_id="+id+baseline, "")
			seen.Taken()
			answers[i] = strings.ReplaceAll(strip(ask(g, mine, "GET", "/v1/metrics/compare?run_id="+id+baseline, "")), id, "run")
			queries[i] = texts(seen)
		}
		if diff := cmp.Diff(answers[1], answers[0]); diff != "" || !strings.Contains(answers[0], `"run_id":"run"`) {
			t.Errorf("the responses differ (-unknown +theirs):\n%s\n%s", diff, answers[0])
		}
		if diff := cmp.Diff(queries[1], queries[0]); diff != "" {
			t.Errorf("the statements differ (-unknown +theirs):\n%s", diff)
		}
	})
	t.Run("a list", func(t *testing.T) {
		for _, address := range []string{"/v1/runs", "/v1/alerts", "/v1/recommendations", "/v1/catalog/questions", "/v1/brands"} {
			w := ask(g, mine, "GET", address+"?limit=200", "")
			for _, hidden := range []string{theirRun.ID, theirBrand.ID, "golden-q4", "Another account's", f.accounts["golden other"].Text("acct")} {
				if strings.Contains(w.Body.String(), hidden) {
					t.Errorf("GET %s shows %q", address, hidden)
				}
			}
		}
	})
	t.Run("a cursor", func(t *testing.T) {
		for range 2 {
			ask(g, theirs, "POST", "/v1/runs", strings.Replace(run, "QUESTION", "golden-q1", 1))
		}
		w := ask(g, theirs, "GET", "/v1/catalog/questions?limit=1", "")
		var d struct {
			NextCursor string `json:"next_cursor"`
		}
		must(t, json.Unmarshal(w.Body.Bytes(), &d))
		if w := ask(g, mine, "GET", "/v1/catalog/questions?limit=1&cursor="+d.NextCursor, ""); w.Code != http.StatusBadRequest {
			t.Errorf("another account's cursor: got %d %s", w.Code, w.Body)
		}
	})
}

var (
	changing = regexp.MustCompile(`req_[0-9a-z]{26}|"as_of":"[^"]*"`)
	runIDs   = regexp.MustCompile(`run_[0-9a-z]{26}`)
)

// strip returns a response without what differs between any two requests.
func strip(w *httptest.ResponseRecorder) string {
	h := w.Header().Clone()
	for _, name := range []string{"X-Request-Id", "RateLimit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "ETag"} {
		delete(h, name)
	}
	var b bytes.Buffer
	b.WriteString(http.StatusText(w.Code) + "\n")
	h.Write(&b)
	b.WriteString(changing.ReplaceAllString(w.Body.String(), "req"))
	return b.String()
}

// texts returns the statements seen since the last call, without their arguments.
func texts(seen *storetest.Statements) string {
	var b strings.Builder
	for _, s := range seen.Taken() {
		b.WriteString(s.SQL + "\n")
	}
	return b.String()
}

// TestWalkWhileRowsAreAdded reads a list page by page, and adds runs before each page: every run that existed when the
// first page was read is returned exactly once, in order.
func TestWalkWhileRowsAreAdded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	const before, account = 45, "pages"
	created := time.Now().Truncate(time.Second) // all have the same time, so their ids decide the order
	add := func(n int) {
		_, err := f.pool.Exec(t.Context(), `
			INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids,
				repetitions, locale, country, language, total_jobs, created_at)
			SELECT $1, gen_random_uuid(), $2, 'grounded', 'AIVM-1.0', '{golden/all}', '{golden-q1}', 1, 'it-IT', 'IT', 'it', 1,
				$4 FROM generate_series(1, $3::integer)`, f.accounts["golden pages"], f.credentials[account], n, created)
		must(t, err)
	}
	add(before)
	there := make(map[string]int)
	rows, err := f.pool.Query(t.Context(), `SELECT id::text FROM measurement_runs WHERE account_id = $1`, f.accounts["golden pages"])
	must(t, err)
	for rows.Next() {
		var id string
		must(t, rows.Scan(&id))
		there[id] = 0
	}
	must(t, rows.Err())

	var last string
	address := "?path=/v1/runs&limit=4"
	for pages := 0; address != ""; pages++ {
		if pages > 500 {
			t.Fatal("the walk does not end")
		}
		add(3)
		w := ask(g, f.keys[account], "GET", address, "")
		if w.Code != 200 {
			t.Fatalf("page %d: %d %s", pages, w.Code, w.Body)
		}
		var d struct {
			Data []struct {
				ID        string
				CreatedAt string `json:"created_at"`
			}
			NextCursor string `json:"next_cursor"`
		}
		must(t, json.Unmarshal(w.Body.Bytes(), &d))
		for _, run := range d.Data {
			key := run.CreatedAt + run.ID
			if last != "" && key >= last {
				t.Fatalf("%s after %s: not newest first", key, last)
			}
			last = key
			id := parseRun(t, run.ID)
			if _, ok := there[id]; ok {
				there[id]++
			}
		}
		address = ""
		if d.NextCursor != "" {
			address = "?path=/v1/runs&limit=4&cursor=" + d.NextCursor
		}
	}
	for id, times := range there {
		if times != 1 {
			t.Errorf("run %s, which existed before, was returned %d times", id, times)
		}
	}
}
