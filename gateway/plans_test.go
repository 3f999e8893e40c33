package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/gateway"
	"aiv/store"
	"aiv/store/storetest"
)

// manyRows is the number of rows of each kind of the account that reads.
const manyRows = 15_000

// TestListPlansReadLittle reads the first two pages of each list by each of its filters and by pairs of them, with
// common and rare values. PostgreSQL must read at most a few times the rows of the page, both without statistics and
// after ANALYZE.
func TestListPlansReadLittle(t *testing.T) {
	if storetest.OnCitus() {
		t.Skip("about plans of PostgreSQL, which a shard has as well; TestOneShard shows that a list reads one")
	}
	t.Parallel()
	f := newFixture(t)
	f.fill(t)
	results := "/v1/runs/" + f.fillResults(t).Text("run") + "/results"
	seen := &storetest.Statements{}
	f.pool = storetest.WithTracer(t, f.pool, seen)
	g := f.gateway(io.Discard)
	deep := time.Now().Add(-20 * 24 * time.Hour).UTC().Format(time.RFC3339)

	const limit = 20
	filtered := make(map[string]bool) // names of parameters
	type read struct {
		path string
		most int // rows of one statement
	}
	var reads []read
	for path, filters := range map[string][]string{
		"/v1/runs": {"", "status=completed", "status=failed", "status=failed,canceled", "status=queued,running,completed,partial,failed", "country=IT",
			"country=FR", "measurement_type=grounded", "measurement_type=none", "model_id=golden/all", "model_id=golden/italian",
			"created_to=" + deep, "created_from=" + deep, "status=failed&created_to=" + deep, "model_id=golden/all&created_to=" + deep},
		results: {"", "status=queued", "status=running", "status=completed", "status=failed", "status=canceled", "status=running,failed",
			"status=queued,completed", "model_id=golden/all&status=running", "question_id=golden-q2", "question_id=golden-q2&status=failed",
			"model_id=golden/all&question_id=golden-q1", "model_id=golden/none"},
		"/v1/recommendations": {"", "status=done", "status=suggested", "priority=high", "priority=low", "category=social", "type=common", "type=rare",
			"run_id=run_00000000000000000000000000", "created_from=" + deep, "created_to=" + deep},
		"/v1/alerts": {"", "status=open", "status=resolved", "severity=critical", "severity=low", "type=run_failed", "type=visibility_drop",
			"run_id=run_00000000000000000000000000", "detected_from=" + deep, "detected_to=" + deep},
		"/v1/catalog/questions": {"", "language=it", "language=xx", "country=IT", "topic=common", "topic=rare", "tag=common", "tag=rare",
			"status=active", "status=archived"},
	} {
		for _, filter := range filters {
			reads = append(reads, read{fmt.Sprintf("%s?limit=%d&%s", path, limit, filter), 8 * (limit + 1)})
			name, _, _ := strings.Cut(filter, "=")
			filtered[strings.Replace(path, results, "/v1/runs/{id}/results", 1)+" "+name] = true
		}
	}
	// Which answers mention or cite a brand is read from facts, a row of which has those of up to a thousand jobs.
	others := []string{"limit", "cursor", "id", "brand_id", "mentioned", "cited"}
	for _, route := range gateway.Routes() {
		for _, name := range route.Query {
			if filtered[route.Path+" "] && !filtered[route.Path+" "+name] && !slices.Contains(others, name) {
				t.Errorf("%s is not read with the filter %s alone", route.Name, name)
			}
		}
	}
	// Of two filters that match many rows each, the rows of one are counted up to 1,001, and at most those are read.
	for path, filters := range map[string][]string{
		"/v1/runs": {"model_id=golden/all&status=queued", "model_id=golden/all&status=failed", "model_id=golden/all&country=FR", "model_id=golden/italian&status=completed",
			"country=IT&status=queued,running", "country=IT&measurement_type=none", "status=completed&measurement_type=none", "model_id=golden/all&status=completed&country=IT"},
		"/v1/recommendations":   {"type=common&status=done", "category=on_page&priority=high", "type=common&run_id=run_00000000000000000000000000"},
		"/v1/alerts":            {"type=visibility_drop&status=resolved", "status=open&severity=critical"},
		"/v1/catalog/questions": {"topic=common&status=archived", "language=it&country=XX", "tag=rare&status=active"},
	} {
		for _, filter := range filters {
			reads = append(reads, read{fmt.Sprintf("%s?limit=%d&%s", path, limit, filter), 8_000})
		}
	}
	for _, settled := range []bool{false, true} {
		if settled {
			_, err := f.pool.Exec(t.Context(), `ANALYZE`)
			must(t, err)
		}
		explains := storetest.NewSession(t, f.pool)
		for _, read := range reads {
			address := read.path
			for page := range 2 {
				body, lists := f.readTraced(t, g, seen, strings.TrimSuffix(address, "&"))
				for _, s := range lists {
					if cost := explains.Explain(t, s.SQL, s.Args...); cost.Rows > read.most {
						t.Errorf("settled %v, page %d of %s touched %d rows, more than %d:\n%s", settled, page+1, read.path, cost.Rows, read.most, s.SQL)
					}
				}
				var d struct {
					NextCursor *string `json:"next_cursor"`
				}
				must(t, json.Unmarshal(body, &d))
				if d.NextCursor == nil {
					break
				}
				address = read.path + "&cursor=" + *d.NextCursor
			}
		}
		f.readsFewPages(t, g, seen, explains)
	}
}

// readTraced reads an address and returns the response and the statements that read a page.
func (f *fixture) readTraced(t *testing.T, g http.Handler, seen *storetest.Statements, address string) (body []byte, read []storetest.Statement) {
	t.Helper()
	seen.Taken()
	w := ask(g, f.keys["full"], "GET", address, "")
	if w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s", address, w.Code, w.Body)
	}
	if read = lists(seen); len(read) == 0 {
		t.Errorf("no statement was seen for %s", address)
	}
	return w.Body.Bytes(), read
}

// readsFewPages reads the run with the greatest id, which an index scan from the account's first run would reach last.
func (f *fixture) readsFewPages(t *testing.T, g http.Handler, seen *storetest.Statements, explains *storetest.Session) {
	t.Helper()
	var last store.ID
	must(t, f.pool.QueryRow(t.Context(), `SELECT id FROM measurement_runs WHERE account_id = $1 ORDER BY account_id, id DESC LIMIT 1`,
		f.accounts["golden"]).Scan(&last))
	for _, address := range []string{"/v1/runs/" + last.Text("run"), "/v1/runs?id=" + last.Text("run"), "/v1/runs/" + last.Text("run") + "/results"} {
		_, lists := f.readTraced(t, g, seen, address)
		for _, s := range lists {
			if cost := explains.Explain(t, s.SQL, s.Args...); cost.Pages > 30 {
				t.Errorf("%s read %d pages:\n%s", address, cost.Pages, s.SQL)
			}
		}
	}
}

// fill writes many rows for the account golden, and a third as many for another: 1 in 500 has a rare value.
func (f *fixture) fill(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.url)
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `SET session_replication_role = replica`) // the other accounts have no credentials
	must(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO accounts SELECT gen_random_uuid(), 'other account', 'golden' FROM generate_series(1, 300)`)
	must(t, err)
	for _, sql := range []string{
		`INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
			repetitions, locale, country, language, total_jobs, created_at, started_at, finished_at)
		SELECT account, gen_random_uuid(), $2, CASE WHEN n % 500 = 0 THEN 'failed' ELSE 'completed' END, 'grounded', 'AIVM-1.0',
			CASE WHEN n % 500 = 0 THEN '{golden/italian,golden/all}'::text[] ELSE '{golden/all}' END, '{golden-q1}', 1, 'it-IT',
			CASE WHEN n % 500 = 0 THEN 'FR' ELSE 'IT' END, 'it', CASE WHEN n % 500 = 0 THEN 2 ELSE 1 END, at, at, at`,
		`INSERT INTO recommendations SELECT account, gen_random_uuid(), CASE WHEN n % 500 = 0 THEN 'rare' ELSE 'common' END,
			CASE WHEN n % 500 = 0 THEN 'social' ELSE 'on_page' END, 'title', '', CASE WHEN n % 500 = 0 THEN 'high' ELSE 'low' END,
			CASE WHEN n % 500 = 0 THEN 'done' ELSE 'suggested' END, '{}', '{}', NULL, at, at FROM (SELECT $2::uuid) unused,`,
		`INSERT INTO alerts SELECT account, gen_random_uuid(), CASE WHEN n % 500 = 0 THEN 'run_failed' ELSE 'visibility_drop' END,
			CASE WHEN n % 500 = 0 THEN 'critical' ELSE 'low' END, CASE WHEN n % 500 = 0 THEN 'resolved' ELSE 'open' END, 'title', '',
			NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, at, CASE WHEN n % 500 = 0 THEN at END FROM (SELECT $2::uuid) unused,`,
	} {
		if !strings.HasSuffix(sql, ",") {
			sql += " FROM"
		}
		_, err = conn.Exec(t.Context(), sql+` (
			SELECT n, CASE WHEN n % 4 <> 1 THEN $1 ELSE (SELECT id FROM accounts WHERE name = 'other account' ORDER BY id OFFSET 7 LIMIT 1) END AS account,
				now() - n * interval '1 minute' AS at
			FROM generate_series(1, $3::integer) n) rows`, f.accounts["golden"], f.credentials["full"], manyRows*4/3)
		must(t, err)
	}
	for _, sql := range []string{
		`INSERT INTO questions (id, text, language, country, topic, tags, status) SELECT id, text, language, country, topic, tags, status FROM q
			WHERE $1::uuid <> $2::uuid AND n % 3 = 0`,
		`INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status)
			SELECT CASE n % 3 WHEN 1 THEN $1::uuid ELSE $2 END, id, text, language, country, topic, tags, status FROM q WHERE n % 3 > 0`,
	} {
		_, err = conn.Exec(t.Context(), `
			WITH q AS (
				SELECT n, 'fill-' || n AS id, 'text' AS text, CASE WHEN n % 500 = 0 THEN 'xx' ELSE 'it' END AS language, 'IT' AS country,
					CASE WHEN n % 500 = 0 THEN 'rare' ELSE 'common' END AS topic, CASE WHEN n % 500 = 0 THEN '{rare}'::text[] ELSE '{common}' END AS tags,
					CASE WHEN n % 500 = 0 THEN 'archived' ELSE 'active' END AS status
				FROM generate_series(1, $3::integer) n)
			`+sql, f.accounts["golden"], f.accounts["golden other"], manyRows)
		must(t, err)
	}
	_, err = conn.Exec(t.Context(), `INSERT INTO question_tags (tag, question_id) SELECT unnest(tags), id FROM questions WHERE id LIKE 'fill-%'`)
	must(t, err)
	_, err = conn.Exec(t.Context(), `INSERT INTO own_question_tags SELECT account_id, unnest(tags), id FROM own_questions WHERE id LIKE 'fill-%'`)
	must(t, err)
}

// fillResults writes a run whose jobs are final but for the first and the last ones, 1 in 500 failed, beside others.
func (f *fixture) fillResults(t testing.TB) store.ID {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.url)
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), `SET session_replication_role = replica`)
	must(t, err)
	run := store.NewID()
	run[15] = 0
	for range 2 { // ids that follow each other: reading beyond the first run would find the second
		run[15]++
		_, err = conn.Exec(t.Context(), `
			INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
				repetitions, locale, country, language, total_jobs, jobs_returned, jobs_completed, jobs_failed, created_at, started_at)
			VALUES ($1, $2, $3, 'running', 'grounded', 'AIVM-1.0', '{golden/all}', '{golden-q1,golden-q2}', $4 / 2, 'it-IT', 'IT', 'it', $4, 5,
				$4 - $4 / 500 - 10, $4 / 500, now(), now())`, f.accounts["golden"], run, f.credentials["full"], manyRows)
		must(t, err)
		_, err = conn.Exec(t.Context(), `
			INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer, error_code, error_message)
			SELECT $1, $2, n, 1, true, now(), now(), CASE WHEN n % 500 = 0 THEN NULL ELSE '{}' END,
				CASE WHEN n % 500 = 0 THEN 'failed' END, CASE WHEN n % 500 = 0 THEN '' END
			FROM generate_series(6, $3::integer - 5) n`, f.accounts["golden"], run, manyRows)
		must(t, err)
		_, err = conn.Exec(t.Context(), `
			INSERT INTO job_leases VALUES ($1, $2, 1, 5, 'ready', now(), 'held', 1, 0, now() + interval '1 hour', now(), $2)`, f.accounts["golden"], run)
		must(t, err)
	}
	return run
}

// lists returns the statements that read a page, of those since the last call.
func lists(seen *storetest.Statements) []storetest.Statement {
	return slices.DeleteFunc(seen.Taken(), func(s storetest.Statement) bool { return !strings.Contains(s.SQL, " LIMIT ") })
}
