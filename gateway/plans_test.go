package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
	"aiv/store/storetest"
)

// TestListPlansReadLittle reads the first two pages of each list by each of its filters and by pairs of them, with
// common and rare values. PostgreSQL must read at most a few times the rows of the page, both without statistics and
// after ANALYZE.
func TestListPlansReadLittle(t *testing.T) {
	storetest.SkipOnCitus(t, "about plans of PostgreSQL, which a shard has as well; TestOneShard shows that a list reads one")
	t.Parallel()
	f := newFixture(t)
	f.fill(t)
	deep := time.Now().Add(-20 * 24 * time.Hour).UTC().Format(time.RFC3339)
	const noRun = "run_id=run_00000000000000000000000000"
	filters := map[string][]string{
		"/v1/runs": {"", "status=completed", "status=failed", "status=failed,canceled",
			"status=queued,running,completed,partial,failed", "country=IT", "country=FR", "measurement_type=grounded",
			"measurement_type=none", "model_id=golden/all", "model_id=golden/italian",
			"created_to=" + deep, "created_from=" + deep, "status=failed&created_to=" + deep, "model_id=golden/all&created_to=" + deep},
		"/v1/runs/{id}/results": {"", "status=queued", "status=running", "status=completed", "status=failed", "status=canceled",
			"status=running,failed", "status=queued,completed", "model_id=golden/all&status=running", "question_id=golden-q2",
			"question_id=golden-q2&status=failed", "model_id=golden/all&question_id=golden-q1", "model_id=golden/none"},
		"/v1/recommendations": {"", "status=done", "status=suggested", "priority=high", "priority=low", "category=social",
			"type=common", "type=rare", noRun, "created_from=" + deep, "created_to=" + deep},
		"/v1/alerts": {"", "status=open", "status=resolved", "severity=critical", "severity=low", "type=run_failed",
			"type=visibility_drop", noRun, "detected_from=" + deep, "detected_to=" + deep},
		"/v1/events":                   {"", "type=run.completed", "type=run.failed", "type=run.failed,alert.opened", "created_from=" + deep, "created_to=" + deep},
		"/v1/webhooks/{id}/deliveries": {"", "status=delivered", "status=failed", "status=pending"},
		"/v1/catalog/questions": {"", "language=it", "language=xx", "country=IT", "topic=common", "topic=rare", "tag=common",
			"tag=rare", "status=active", "status=archived"},
	}
	// Of two filters that match many rows each, the rows of one are counted up to 1,001, and at most those are read.
	pairs := map[string][]string{
		"/v1/runs": {"model_id=golden/all&status=queued", "model_id=golden/all&status=failed", "model_id=golden/all&country=FR",
			"model_id=golden/italian&status=completed", "country=IT&status=queued,running", "country=IT&measurement_type=none",
			"status=completed&measurement_type=none", "model_id=golden/all&status=completed&country=IT"},
		"/v1/recommendations":   {"type=common&status=done", "category=on_page&priority=high", "type=common&" + noRun},
		"/v1/alerts":            {"type=visibility_drop&status=resolved", "status=open&severity=critical"},
		"/v1/catalog/questions": {"topic=common&status=archived", "language=it&country=XX", "tag=rare&status=active"},
	}
	// Which answers mention or cite a brand is read from facts, where one row covers up to a thousand jobs.
	others := []string{"limit", "cursor", "id", "brand_id", "mentioned", "cited"}
	unread := []string{"/v1/catalog/models", "/v1/brands", "/v1/schedules", "/v1/webhooks", // they have few rows
		"/v1/schedules/{id}/occurrences", "/v1/sources"} // tests of packages schedules and visibility read them
	for _, r := range routes {
		if slices.Contains(r.input.query, "cursor") && filters[r.path] == nil && !slices.Contains(unread, r.path) {
			t.Errorf("%s is not read", r.name())
		}
		for _, name := range r.input.query {
			begins := func(filter string) bool { return strings.HasPrefix(filter, name+"=") }
			if filters[r.path] != nil && !slices.ContainsFunc(filters[r.path], begins) && !slices.Contains(others, name) {
				t.Errorf("%s is not read with the filter %s", r.name(), name)
			}
		}
	}

	const limit = 20
	most := make(map[string]int) // rows that one statement may touch, by the address
	for rows, addresses := range map[int]map[string][]string{8 * (limit + 1): filters, 8_000: pairs} {
		for path, all := range addresses {
			for _, filter := range all {
				most[fmt.Sprint(path, "?limit=", limit, "&", filter)] = rows
			}
		}
	}

	seen := &storetest.Statements{}
	f.pool = storetest.WithTracer(t, f.pool, seen)
	g := f.gateway()
	for _, settled := range []bool{false, true} {
		if settled {
			f.exec(t, `ANALYZE`)
		}
		explains := storetest.NewSession(t, f.pool)
		for first, most := range most {
			first = strings.NewReplacer("runs/{id}", "runs/"+filled.Text("run"), "webhooks/{id}", "webhooks/"+filled.Text("wh")).Replace(first)
			address := first
			for range 2 { // pages
				seen.Taken()
				w := ask(g, f.keys["full"], "GET", address, "")
				if w.Code != http.StatusOK {
					t.Fatalf("GET %s: %d %s", address, w.Code, w.Body)
				}
				explained := 0
				for _, s := range seen.Taken() {
					if !strings.Contains(s.SQL, " LIMIT ") { // reads no page
						continue
					}
					explained++
					if cost := explains.Explain(t, s.SQL, s.Args...); cost.Rows > most {
						t.Errorf("settled %v, %s touched %+v, more than %d rows:\n%s", settled, address, cost, most, s.SQL)
					}
				}
				if explained == 0 {
					t.Errorf("no statement was seen for %s", address)
				}
				var got listPage[any]
				if must(t, json.Unmarshal(w.Body.Bytes(), &got)); got.NextCursor == "" {
					break
				}
				address = first + "&cursor=" + got.NextCursor
			}
		}
	}
}

// filled is the id of a run and of a webhook that fill creates. The id of another run is the next one: reading beyond
// the first would find it.
var filled, next = store.ID{15: 1}, store.ID{15: 2}

// fill writes 15,000 rows of each kind for the account golden, and a third as many for another: 1 in 500 has a rare
// value. Of the jobs of a run, all but the first and the last ones are final.
func (f *fixture) fill(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.url)
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), strings.NewReplacer("{account}", f.accounts["golden"].UUID(), "{other}", f.accounts["golden other"].UUID(),
		"{credential}", f.credentials["full"].UUID(), "{filled}", filled.UUID(), "{next}", next.UUID()).Replace(`
SET session_replication_role = replica; -- foreign keys are not checked
CREATE TEMP TABLE many AS
	SELECT n, n % 500 = 0 AS rare, now() - n * interval '1 minute' AS at,
		CASE n % 4 WHEN 1 THEN '{other}'::uuid ELSE '{account}' END AS account
	FROM generate_series(1, 20000) n;
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
		repetitions, locale, country, language, total_jobs, created_at, started_at, finished_at)
	SELECT account, gen_random_uuid(), '{credential}', CASE WHEN rare THEN 'failed' ELSE 'completed' END, 'grounded', 'AIVM-1.0',
		CASE WHEN rare THEN '{golden/italian,golden/all}'::text[] ELSE '{golden/all}' END, '{golden-q1}', 1, 'it-IT',
		CASE WHEN rare THEN 'FR' ELSE 'IT' END, 'it', CASE WHEN rare THEN 2 ELSE 1 END, at, at, at FROM many;
INSERT INTO recommendations SELECT account, gen_random_uuid(), CASE WHEN rare THEN 'rare' ELSE 'common' END,
	CASE WHEN rare THEN 'social' ELSE 'on_page' END, 'title', '', CASE WHEN rare THEN 'high' ELSE 'low' END,
	CASE WHEN rare THEN 'done' ELSE 'suggested' END, '{}', '{}', NULL, at, at FROM many;
INSERT INTO alerts SELECT account, gen_random_uuid(), CASE WHEN rare THEN 'run_failed' ELSE 'visibility_drop' END,
	CASE WHEN rare THEN 'critical' ELSE 'low' END, CASE WHEN rare THEN 'resolved' ELSE 'open' END, 'title', '',
	NULL, 'none', NULL, NULL, NULL, NULL, NULL, NULL, at, CASE WHEN rare THEN at END FROM many;
CREATE TEMP TABLE q AS
	SELECT n, account, 'fill-' || n AS id, CASE WHEN rare THEN 'xx' ELSE 'it' END AS language,
		CASE WHEN rare THEN 'rare' ELSE 'common' END AS topic, CASE WHEN rare THEN 'archived' ELSE 'active' END AS status FROM many;
INSERT INTO questions (id, text, language, country, topic, tags, status)
	SELECT id, 'text', language, 'IT', topic, ARRAY[topic], status FROM q WHERE n % 3 = 0;
INSERT INTO own_questions (account_id, id, text, language, country, topic, tags, status)
	SELECT account, id, 'text', language, 'IT', topic, ARRAY[topic], status FROM q WHERE n % 3 > 0;
INSERT INTO question_tags (tag, question_id) SELECT topic, id FROM q WHERE n % 3 = 0;
INSERT INTO own_question_tags SELECT account, topic, id FROM q WHERE n % 3 > 0;
INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids,
		repetitions, locale, country, language, total_jobs, jobs_returned, jobs_completed, jobs_failed, created_at, started_at)
	SELECT '{account}', id::uuid, '{credential}', 'running', 'grounded', 'AIVM-1.0', '{golden/all}', '{golden-q1,golden-q2}', 7500, 'it-IT',
		'IT', 'it', 15000, 5, 14960, 30, now(), now() FROM unnest('{{filled},{next}}'::text[]) id;
INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer, error_code, error_message)
	SELECT '{account}', id::uuid, n, 1, true, now(), now(), CASE WHEN rare THEN NULL ELSE '{}' END,
		CASE WHEN rare THEN 'failed' END, CASE WHEN rare THEN '' END
	FROM many, unnest('{{filled},{next}}'::text[]) id WHERE n BETWEEN 6 AND 14995;
INSERT INTO job_leases
	SELECT '{account}', id::uuid, 1, 5, 'ready', now(), 'held', 1, 0, now() + interval '1 hour', now(), id::uuid
	FROM unnest('{{filled},{next}}'::text[]) id;
INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events)
	VALUES ('{account}', '{filled}', 10, 'https://fill.example', '', '{*}');
INSERT INTO events (account_id, id, type, subject_id, data, created_at)
	SELECT '{account}', md5('fill' || n)::uuid, CASE WHEN rare THEN 'run.failed' ELSE 'run.completed' END, md5('fill' || n)::uuid, '{}', at
	FROM many;
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, status, attempts, next_attempt_at, created_at, delivered_at)
	SELECT '{account}', md5('fill' || n)::uuid, '{filled}', CASE WHEN rare THEN 'failed' ELSE 'delivered' END, 1, NULL, at,
		CASE WHEN rare THEN NULL ELSE at END
	FROM many`))
	must(t, err)
}
