package gateway

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestNoRouteShowsOtherAccounts asks each route, and a tool, for rows of another account, by each id and filter that
// could name them, and for rows that do not exist. The responses must be the same but for the request's id, and so must
// the statements that PostgreSQL ran. The golden files show that lists without filters have the account's rows only.
func TestNoRouteShowsOtherAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	seen := &storetest.Statements{}
	f.pool = storetest.WithTracer(t, f.pool, seen)
	g := f.gateway()
	mine, theirs := f.keys["full"], f.keys["other"]

	myRun := f.run(t, g, mine)
	aboutTheirs := strings.Replace(smallRun, "golden-q1", "ID", 1)
	const noRun, noBrand, account = "run_01k00000000000000000000000", "brand_01k00000000000000000000000", "golden other"
	theirRun := create(t, g, theirs, "/v1/runs", strings.Replace(aboutTheirs, "ID", "golden-q4", 1))
	theirBrand := create(t, g, theirs, "/v1/brands", `{"kind":"own","name":"Kovalt","domains":["kovalt.example"]}`)
	for _, table := range []string{"alerts", "recommendations"} {
		f.exec(t, `UPDATE `+table+` SET run_id = $2 WHERE account_id = $1`, f.accounts[account], parseRun(t, theirRun))
	}

	for _, tt := range []struct{ method, address, body, theirs, unknown string }{ // in place of ID
		{"GET", "/v1/runs/ID", "", theirRun, noRun},
		{"GET", "?path=/v1/runs/ID", "", theirRun, noRun},
		{"GET", "/v1/runs/ID/results", "", theirRun, noRun},
		{"POST", "/v1/runs/ID/cancel", "{}", theirRun, noRun},
		{"GET", "/v1/runs?id=ID", "", theirRun, noRun},
		{"POST", "/v1/runs", aboutTheirs, "golden-q4", "golden-q0"},
		{"GET", "/v1/alerts?run_id=ID", "", theirRun, noRun},
		{"GET", "/v1/alerts?type=ID", "", "sentiment_shift", "citation_lost"},
		{"GET", "/v1/recommendations?run_id=ID", "", theirRun, noRun},
		{"GET", "/v1/recommendations?type=ID", "", "join_thread", "none"},
		{"GET", "/v1/recommendations?status=ID", "", "dismissed", "accepted"},
		{"GET", "/v1/catalog/questions?topic=ID", "", "private", "none"},
		{"GET", "/v1/brands/ID", "", theirBrand, noBrand},
		{"PATCH", "/v1/brands/ID", `{"name":"Ostrel"}`, theirBrand, noBrand},
		{"POST", "/v1/brands/preview", `{"kind":"own","name":"Ostrel","brand_id":"ID"}`, theirBrand, noBrand},
		{"POST", "/v1/brands/preview", `{"kind":"own","name":"Ostrel","run_id":"ID"}`, theirRun, noRun},
		{"POST", "/v1/brands/preview", `{"kind":"own","name":"Kovalt","domains":["ID.example"]}`, "kovalt", "halden"},
		{"GET", "/v1/metrics?group_by=model&run_id=ID", "", theirRun, noRun},
		{"GET", "/v1/metrics?brand_id=ID", "", theirBrand, noBrand},
		{"GET", "/v1/metrics/compare?run_id=ID&baseline_run_id=" + myRun, "", theirRun, noRun},
		{"GET", "/v1/sources?level=url&run_id=ID", "", theirRun, noRun},
		{"GET", "/v1/sources?brand_id=ID", "", theirBrand, noBrand},
		{"GET", "/v1/runs/" + myRun + "/results?mentioned=true&brand_id=ID", "", theirBrand, noBrand},
		{"GET", "/v1/runs/" + myRun + "/results?cited=false&brand_id=ID", "", theirBrand, noBrand},
		{"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
			`"params":{"name":"get_run","arguments":{"run_id":"ID"}}}`, theirRun, noRun},
	} {
		t.Run(tt.method+" "+tt.address, func(t *testing.T) {
			answers, queries := [2]string{}, [2]map[bool]string{}
			for range 2 { // so that no statement is prepared for the first time when it counts
				for i, id := range []string{tt.theirs, tt.unknown} {
					seen.Taken()
					queries[i] = make(map[bool]string)
					w := ask(g, mine, tt.method, strings.Replace(tt.address, "ID", id, 1), strings.Replace(tt.body, "ID", id, 1))
					answers[i] = strings.ReplaceAll(strip(w), `"`+id+`"`, `"ID"`)
					for _, s := range seen.Taken() {
						queries[i][strings.Contains(s.SQL, "WITH counted")] += s.SQL + "\n" // counting runs beside the read of a run
					}
				}
			}
			if len(queries[0]) == 0 {
				t.Error("no statement was seen")
			}
			storetest.Equal(t, answers[1], answers[0], "the response to an id of another account, and to an unknown one")
			storetest.Equal(t, queries[1], queries[0], "the statements for an id of another account, and for an unknown one")
		})
	}
}

var changing = regexp.MustCompile(`req_[0-9a-z]{26}|\\?"as_of\\?":\\?"[^"]*"`)

// strip returns a response without what differs between any two requests.
func strip(w *httptest.ResponseRecorder) string {
	h := w.Header().Clone()
	for _, name := range []string{"X-Request-Id", "RateLimit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "ETag"} {
		delete(h, name)
	}
	return fmt.Sprintln(w.Code, h, changing.ReplaceAllString(w.Body.String(), "req"))
}

// TestWalkWhileRowsAreAdded reads a list page by page, and adds runs before each page: every run that existed when the
// first page was read is returned exactly once, in order. All have the same time, so their ids decide the order.
func TestWalkWhileRowsAreAdded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway()
	account, created := f.accounts["golden pages"], time.Now().Truncate(time.Second)
	add := func(n int) {
		f.exec(t, `
			INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids,
				repetitions, locale, country, language, total_jobs, created_at)
			SELECT $1, gen_random_uuid(), $2, 'grounded', 'AIVM-1.0', '{golden/all}', '{golden-q1}', 1, 'it-IT', 'IT', 'it', 1,
				$4 FROM generate_series(1, $3::integer)`, account, f.credentials["pages"], n, created)
	}
	add(45)
	want := storetest.Value[[]string](t, f.pool,
		`SELECT array_agg(id::text ORDER BY id DESC) FROM measurement_runs WHERE account_id = $1`, account)
	var got []string
	cursor := ""
	for page := (listPage[struct{ ID string }]{HasMore: true}); page.HasMore; cursor = "&cursor=" + page.NextCursor {
		add(3)
		page.NextCursor = ""
		must(t, json.Unmarshal(ask(g, f.keys["pages"], "GET", "?path=/v1/runs&limit=4"+cursor, "").Body.Bytes(), &page))
		for _, run := range page.Data {
			if id := parseRun(t, run.ID); slices.Contains(want, id) {
				got = append(got, id)
			}
		}
	}
	storetest.Equal(t, want, got, "the runs that existed before")
}
