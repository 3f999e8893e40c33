package service

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"aiv/cmd/aiv/internal/counting"
	"aiv/gateway/telemetry"
	"aiv/runs/jobs"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) {
	databaseTimeout = storetest.Patience
	storetest.Main(m)
}

var must = storetest.Must

// TestRecountMetrics: answers wait for their recount until it has ended.
func TestRecountMetrics(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t)
	storetest.Exec(t, pool, `INSERT INTO plans (code, features) VALUES ('p', '{}')`,
		`INSERT INTO accounts (id, name, plan_code) VALUES ('00000000-0000-7000-8000-000000000001', 'A', 'p')`,
		`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) SELECT id, id, 'k', 'aiv_live_00000000', sha256('k'), '{}' FROM accounts`,
		`INSERT INTO questions (id, text, language, country, topic, tags, status) VALUES ('q', '?', 'it', 'IT', 't', '{}', 'active')`,
		`INSERT INTO measurement_runs (account_id, id, credential_id, status, measurement_type, methodology_version, model_ids, question_ids, repetitions,
		   locale, country, language, total_jobs, jobs_completed, started_at, finished_at)
		 SELECT id, id, id, 'completed', 'grounded', 'AIVM-1.0', '{a}', '{q}', 7, 'it-IT', 'IT', 'it', 7, 7, now(), now() FROM accounts`,
		`INSERT INTO job_results (account_id, run_id, ordinal, attempts, settled, started_at, finished_at, answer)
		 SELECT id, id, generate_series(1, 7), 1, true, now(), now(), '{"text":"Kovalt."}' FROM accounts`,
		`INSERT INTO visibility_backlog (account_id, run_id) SELECT id, id FROM accounts`)
	counter := counting.New(pool, nil)
	want := func(recounted, waiting int, oldest string) {
		t.Helper()
		var e telemetry.Exposition
		writeRecounts(pool, counter)(t.Context(), &e)
		page := fmt.Sprintf(`(?s)\naiv_answers_recounted_total %d\n.*\naiv_answers_recounting %d\n.*\naiv_recount_oldest_seconds %s\n`, recounted, waiting, oldest)
		if !regexp.MustCompile(page).MatchString(e.String()) {
			t.Errorf("want %s:\n%s", page, e.String())
		}
	}
	recounted := func(all int) {
		t.Helper()
		_, err := counter.Recount(t.Context())
		must(t, err)
		want(all, 0, "0")
	}
	want(0, 7, "0")
	recounted(7)
	storetest.Exec(t, pool, `INSERT INTO brands (account_id, id, number, kind, name, aliases, domains, exclude, match_case, status)
		SELECT id, id, 1, 'own', 'Kovalt', '{}', '{}', '{}', false, 'active' FROM accounts`,
		`INSERT INTO brand_revisions (account_id, revision, changed_at, pending_since) SELECT id, 1, now(), now() - interval '1 hour' FROM accounts`)
	want(7, 7, `3[67]\d\d\.\d+`)
	recounted(14)
}

// TestSlowBacklog: the database is up while the jobs that wait cannot be counted, and what can be read is on the page.
func TestSlowBacklog(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t)
	storetest.Exec(t, pool, `INSERT INTO providers (code, name) VALUES ('p', 'P')`,
		`INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
		SELECT gen_random_uuid(), gen_random_uuid(), 1, 'p', now(), 3, 5 FROM generate_series(1, 2)`)
	d := jobs.New(jobs.Config{Pool: pool, Timeout: time.Minute, MaxWaiting: 10})
	t.Cleanup(d.Stop)
	page := func(ctx context.Context) string {
		var e telemetry.Exposition
		writeBacklogs(pool, d)(ctx, &e)
		return e.String()
	}
	contains := func(page string, samples ...string) {
		t.Helper()
		for _, s := range samples {
			if !strings.Contains(page, "\n"+s+"\n") {
				t.Errorf("%s is missing:\n%s", s, page)
			}
		}
	}
	always := []string{`aiv_jobs_claimed_total{provider="p"} 0`, "aiv_database_up 1", "aiv_webhook_pending 0", "aiv_webhook_lag_seconds 0"}
	contains(page(t.Context()), append(always, `aiv_jobs_waiting{provider="p"} 6`, `aiv_jobs_leased{provider="p"} 0`, `aiv_provider_paused{provider="p"} 0`)...)

	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), `LOCK TABLE job_queue IN ACCESS EXCLUSIVE MODE`)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	blocked := make(chan string)
	go func() { blocked <- page(ctx) }()
	storetest.UntilWaiting(t, pool, "relation")
	cancel()
	got := <-blocked
	contains(got, always...)
	if strings.Contains(got, "aiv_jobs_waiting") {
		t.Error(got)
	}
	got = page(ctx)
	contains(got, "aiv_database_up 0")
	if strings.Contains(got, "aiv_webhook_pending") {
		t.Errorf("without a database:\n%s", got)
	}
}
