package service

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/telemetry"
	"aiv/runs/jobs"
	"aiv/store/storetest"
	"aiv/store/task"
)

func TestMain(m *testing.M) {
	databaseTimeout = storetest.Patience
	storetest.Main(m)
}

var must = storetest.Must

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

// TestTaskMetrics: a task that has not succeeded yet has no time of its latest success.
func TestTaskMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		result := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
		r := task.NewRunner(slog.New(slog.DiscardHandler), []task.Task{
			{Name: "fails", Every: time.Minute, Prompt: true, Run: result(errors.New("no connection"))},
			{Name: "succeeds", Every: time.Minute, Prompt: true, Run: result(nil)},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		r.Run(ctx)
		var page telemetry.Exposition
		writeTasks(r)(t.Context(), &page)
		for _, want := range []string{
			`aiv_task_runs_total{task="fails",result="failed"} 2`,
			`aiv_task_runs_total{task="succeeds",result="succeeded"} 2`,
			`aiv_task_last_success_timestamp_seconds{task="succeeds"} 9.4668492e+08`, // 2 min after 2000-01-01
		} {
			if !strings.Contains(page.String(), "\n"+want+"\n") {
				t.Errorf("%s is missing:\n%s", want, page.String())
			}
		}
		if strings.Contains(page.String(), `seconds{task="fails"}`) {
			t.Error(page.String())
		}
	})
}
