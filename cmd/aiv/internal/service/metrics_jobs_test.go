package service

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"aiv/gateway/telemetry"
	"aiv/runs/jobs"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestSlowBacklog: the database is up while the jobs that wait cannot be counted, and what can be read is on the page.
func TestSlowBacklog(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t)
	storetest.Exec(t, pool, `INSERT INTO providers (code, name) VALUES ('p', 'P')`,
		`INSERT INTO job_queue (account_id, run_id, model_no, provider_code, run_created_at, next_ordinal, last_ordinal)
		SELECT gen_random_uuid(), gen_random_uuid(), 1, 'p', now(), 3, 5 FROM generate_series(1, 2)`)
	d := jobs.New(jobs.Config{Pool: pool, Timeout: 20 * time.Second, MaxWaiting: 10, Log: slog.New(slog.DiscardHandler)})
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
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `LOCK TABLE job_queue IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
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
	if got := page(ctx); !strings.Contains(got, "\naiv_database_up 0\n") || strings.Contains(got, "aiv_webhook_pending") {
		t.Errorf("without a database:\n%s", got)
	}
}
