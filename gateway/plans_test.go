package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
	"aiv/store/storetest"
)

// manyRows is the number of rows of each kind of the account that reads.
const manyRows = 15_000

// TestListPlansReadLittle reads the first two pages of each list by each of its filters and by pairs of them, with
// common and rare values. PostgreSQL must read at most a few times the rows of the page, both without statistics and
// after ANALYZE.
func TestListPlansReadLittle(t *testing.T) {
	storetest.SkipOnCitus(t, "about plans of PostgreSQL, which a shard has as well; TestOneShard shows that a list reads one")
	t.Parallel()
	f := newFixture(t)
	f.fill(t)
	results := "/v1/runs/" + f.fillResults(t).Text("run") + "/results"
	deliveries := "/v1/webhooks/" + f.fillDeliveries(t).Text("wh") + "/deliveries"
	seen := &storetest.Statements{}
	f.pool = storetest.WithTracer(t, f.pool, seen)
	g := f.gateway(io.Discard)
	deep := time.Now().Add(-20 * 24 * time.Hour).UTC().Format(time.RFC3339)

	var last store.ID // an index scan from the account's first run would reach it at the end
	must(t, f.pool.QueryRow(t.Context(), `SELECT id FROM measurement_runs WHERE account_id = $1 ORDER BY id DESC LIMIT 1`,
		f.accounts["golden"]).Scan(&last))
	lastRun := "/v1/runs/" + last.Text("run")

	const limit, noRun = 20, "run_id=run_00000000000000000000000000"
	type read struct {
		address     string
		rows, pages int // at most, of one statement; 0: any number
	}
	page := func(path, filter string) string { return fmt.Sprint(path, "?limit=", limit, "&", filter) }
	var reads []read
	filtered := make(map[string]bool) // names of parameters
	for path, filters := range map[string][]string{
		"/v1/runs": {"", "status=completed", "status=failed", "status=failed,canceled",
			"status=queued,running,completed,partial,failed", "country=IT", "country=FR", "measurement_type=grounded",
			"measurement_type=none", "model_id=golden/all", "model_id=golden/italian",
			"created_to=" + deep, "created_from=" + deep, "status=failed&created_to=" + deep, "model_id=golden/all&created_to=" + deep},
		results: {"", "status=queued", "status=running", "status=completed", "status=failed", "status=canceled",
			"status=running,failed", "status=queued,completed", "model_id=golden/all&status=running", "question_id=golden-q2",
			"question_id=golden-q2&status=failed", "model_id=golden/all&question_id=golden-q1", "model_id=golden/none"},
		"/v1/recommendations": {"", "status=done", "status=suggested", "priority=high", "priority=low", "category=social",
			"type=common", "type=rare", noRun, "created_from=" + deep, "created_to=" + deep},
		"/v1/alerts": {"", "status=open", "status=resolved", "severity=critical", "severity=low", "type=run_failed",
			"type=visibility_drop", noRun, "detected_from=" + deep, "detected_to=" + deep},
		"/v1/events": {"", "type=run.completed", "type=run.failed", "type=run.failed,alert.opened", "created_from=" + deep, "created_to=" + deep},
		deliveries:   {"", "status=delivered", "status=failed", "status=pending"},
		"/v1/catalog/questions": {"", "language=it", "language=xx", "country=IT", "topic=common", "topic=rare", "tag=common",
			"tag=rare", "status=active", "status=archived"},
	} {
		for _, filter := range filters {
			reads = append(reads, read{address: page(path, filter), rows: 8 * (limit + 1)})
			name, _, _ := strings.Cut(filter, "=")
			filtered[strings.NewReplacer(results, "/v1/runs/{id}/results", deliveries, "/v1/webhooks/{id}/deliveries").Replace(path)+" "+name] = true
		}
	}
	// Which answers mention or cite a brand is read from facts, a row of which has those of up to a thousand jobs.
	others := []string{"limit", "cursor", "id", "brand_id", "mentioned", "cited"}
	unread := []string{"/v1/catalog/models", "/v1/brands", "/v1/schedules", "/v1/webhooks", // they have few rows
		"/v1/schedules/{id}/occurrences", "/v1/sources"} // tests of packages schedules and visibility read them
	for _, route := range Routes() {
		if slices.Contains(route.Query, "cursor") && !filtered[route.Path+" "] && !slices.Contains(unread, route.Path) {
			t.Errorf("%s is not read", route.Name)
		}
		for _, name := range route.Query {
			if filtered[route.Path+" "] && !filtered[route.Path+" "+name] && !slices.Contains(others, name) {
				t.Errorf("%s is not read with the filter %s alone", route.Name, name)
			}
		}
	}
	// Of two filters that match many rows each, the rows of one are counted up to 1,001, and at most those are read.
	for path, filters := range map[string][]string{
		"/v1/runs": {"model_id=golden/all&status=queued", "model_id=golden/all&status=failed",
			"model_id=golden/all&country=FR", "model_id=golden/italian&status=completed", "country=IT&status=queued,running", "country=IT&measurement_type=none",
			"status=completed&measurement_type=none", "model_id=golden/all&status=completed&country=IT"},
		"/v1/recommendations":   {"type=common&status=done", "category=on_page&priority=high", "type=common&" + noRun},
		"/v1/alerts":            {"type=visibility_drop&status=resolved", "status=open&severity=critical"},
		"/v1/catalog/questions": {"topic=common&status=archived", "language=it&country=XX", "tag=rare&status=active"},
	} {
		for _, filter := range filters {
			reads = append(reads, read{address: page(path, filter), rows: 8_000})
		}
	}
	for _, address := range []string{lastRun, lastRun + "/results", "/v1/runs?id=" + last.Text("run")} {
		reads = append(reads, read{address: address, pages: 30})
	}

	for _, settled := range []bool{false, true} {
		if settled {
			f.exec(t, `ANALYZE`)
		}
		explains := storetest.NewSession(t, f.pool)
		for _, read := range reads {
			address := strings.TrimSuffix(read.address, "&")
			for range 2 { // pages
				seen.Taken()
				w := ask(g, f.keys["full"], "GET", address, "")
				if w.Code != http.StatusOK {
					t.Fatalf("GET %s: %d %s", address, w.Code, w.Body)
				}
				statements := slices.DeleteFunc(seen.Taken(), func(s storetest.Statement) bool {
					return !strings.Contains(s.SQL, " LIMIT ") // reads no page
				})
				if len(statements) == 0 {
					t.Errorf("no statement was seen for %s", address)
				}
				for _, s := range statements {
					cost := explains.Explain(t, s.SQL, s.Args...)
					if read.rows > 0 && cost.Rows > read.rows || read.pages > 0 && cost.Pages > read.pages {
						t.Errorf("settled %v, %s touched %+v, more than %+v:\n%s", settled, address, cost, read, s.SQL)
					}
				}
				var got listPage[any]
				if must(t, json.Unmarshal(w.Body.Bytes(), &got)); got.NextCursor == "" {
					break
				}
				address = read.address + "&cursor=" + got.NextCursor
			}
		}
	}
}

// replica returns a function that executes statements without checks of foreign keys.
func (f *fixture) replica(t testing.TB) (exec func(sql string, args ...any)) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.url)
	must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	exec = func(sql string, args ...any) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql, args...)
		must(t, err)
	}
	exec(`SET session_replication_role = replica`)
	return exec
}

// fill writes many rows for the account golden, and a third as many for another: 1 in 500 has a rare value.
func (f *fixture) fill(t testing.TB) {
	t.Helper()
	exec := f.replica(t) // the other accounts have no credentials
	exec(`INSERT INTO accounts SELECT gen_random_uuid(), 'other account', 'golden' FROM generate_series(1, 300)`)
	for _, sql := range []string{
		`INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
			repetitions, locale, country, language, total_jobs, created_at, started_at, finished_at)
		SELECT account, gen_random_uuid(), $2, CASE WHEN rare THEN 'failed' ELSE 'completed' END, 'grounded', 'AIVM-1.0',
			CASE WHEN rare THEN '{golden/italian,golden/all}'::text[] ELSE '{golden/all}' END, '{golden-q1}', 1, 'it-IT',
			CASE WHEN rare THEN 'FR' ELSE 'IT' END, 'it', CASE WHEN rare THEN 2 ELSE 1 END, at, at, at FROM`,
		`INSERT INTO recommendations SELECT account, gen_random_uuid(), CASE WHEN rare THEN 'rare' ELSE 'common' END,
			CASE WHEN rare THEN 'social' ELSE 'on_page' END, 'title', '', CASE WHEN rare THEN 'high' ELSE 'low' END,
			CASE WHEN rare THEN 'done' ELSE 'suggested' END, '{}', '{}', NULL, at, at FROM (SELECT $2::uuid) unused,`,
		`INSERT INTO alerts SELECT account, gen_random_uuid(), CASE WHEN rare THEN 'run_failed' ELSE 'visibility_drop' END,
			CASE WHEN rare THEN 'critical' ELSE 'low' END, CASE WHEN rare THEN 'resolved' ELSE 'open' END, 'title', '',
			NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, at, CASE WHEN rare THEN at END FROM (SELECT $2::uuid) unused,`,
	} {
		exec(sql+` (
			SELECT n % 500 = 0 AS rare, now() - n * interval '1 minute' AS at, CASE WHEN n % 4 <> 1 THEN $1
				ELSE (SELECT id FROM accounts WHERE name = 'other account' ORDER BY id OFFSET 7 LIMIT 1) END AS account
			FROM generate_series(1, $3::integer) n) rows`, f.accounts["golden"], f.credentials["full"], manyRows*4/3)
	}
	for _, sql := range []string{
		`INSERT INTO questions (id, text, language, country, topic, tags, status)
			SELECT id, 'text', language, 'IT', topic, ARRAY[topic], status FROM q WHERE $1::uuid <> $2::uuid AND n % 3 = 0`,
		`INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status)
			SELECT CASE n % 3 WHEN 1 THEN $1::uuid ELSE $2 END, id, 'text', language, 'IT', topic, ARRAY[topic], status FROM q
			WHERE n % 3 > 0`,
	} {
		exec(`
			WITH q AS (
				SELECT n, 'fill-' || n AS id, CASE WHEN n % 500 = 0 THEN 'xx' ELSE 'it' END AS language,
					CASE WHEN n % 500 = 0 THEN 'rare' ELSE 'common' END AS topic,
					CASE WHEN n % 500 = 0 THEN 'archived' ELSE 'active' END AS status
				FROM generate_series(1, $3::integer) n)
			`+sql, f.accounts["golden"], f.accounts["golden other"], manyRows)
	}
	exec(`INSERT INTO question_tags (tag, question_id) SELECT unnest(tags), id FROM questions WHERE id LIKE 'fill-%'`)
	exec(`INSERT INTO own_question_tags SELECT account_id, unnest(tags), id FROM own_questions WHERE id LIKE 'fill-%'`)
}

// fillResults writes a run whose jobs are final but for the first and the last ones, 1 in 500 failed, beside others.
func (f *fixture) fillResults(t testing.TB) store.ID {
	t.Helper()
	exec := f.replica(t)
	account, run := f.accounts["golden"], store.NewID()
	run[15] = 0
	for range 2 { // ids that follow each other: reading beyond the first run would find the second
		run[15]++
		exec(`
			INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
				repetitions, locale, country, language, total_jobs, jobs_returned, jobs_completed, jobs_failed, created_at, started_at)
			VALUES ($1, $2, $3, 'running', 'grounded', 'AIVM-1.0', '{golden/all}', '{golden-q1,golden-q2}', $4 / 2, 'it-IT', 'IT', 'it', $4, 5,
				$4 - $4 / 500 - 10, $4 / 500, now(), now())`, account, run, f.credentials["full"], manyRows)
		exec(`
			INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer, error_code, error_message)
			SELECT $1, $2, n, 1, true, now(), now(), CASE WHEN n % 500 = 0 THEN NULL ELSE '{}' END,
				CASE WHEN n % 500 = 0 THEN 'failed' END, CASE WHEN n % 500 = 0 THEN '' END
			FROM generate_series(6, $3::integer - 5) n`, account, run, manyRows)
		exec(`INSERT INTO job_leases
			VALUES ($1, $2, 1, 5, 'ready', now(), 'held', 1, 0, now() + interval '1 hour', now(), $2)`, account, run)
	}
	return run
}

// fillDeliveries writes many events, with a delivery of each to one endpoint, whose id it returns.
func (f *fixture) fillDeliveries(t testing.TB) (endpoint store.ID) {
	t.Helper()
	exec, account, endpoint := f.replica(t), f.accounts["golden"], store.NewID()
	exec(`
		INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events)
		VALUES ($1, $2, 10, 'https://fill.example', '', '{*}')`, account, endpoint)
	exec(`
		INSERT INTO events (account_id, id, type, subject_id, data, created_at)
		SELECT $1, md5('fill' || n)::uuid, CASE WHEN n % 500 = 0 THEN 'run.failed' ELSE 'run.completed' END, md5('fill' || n)::uuid, '{}',
			now() - n * interval '2 minutes'
		FROM generate_series(1, $2::integer) n`, account, manyRows)
	exec(`
		INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, status, attempts, next_attempt_at, created_at, delivered_at)
		SELECT account_id, id, $2, CASE type WHEN 'run.failed' THEN 'failed' ELSE 'delivered' END, 1, NULL, created_at,
			CASE type WHEN 'run.failed' THEN NULL ELSE created_at END
		FROM events WHERE account_id = $1 AND id = subject_id`, account, endpoint)
	return endpoint
}
