package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/telemetry"
	"aiv/runs/jobs"
	"aiv/store/storetest"
	"aiv/store/task"
)

// TestServiceFitsItsDescriptors: what a service opens at most fits into its descriptors, unless these are too few for anything.
func TestServiceFitsItsDescriptors(t *testing.T) {
	for _, test := range []struct{ descriptors, deliveries, serve, dispatch int }{
		{128, 21, 56, 29},
		{1024, 170, 952, 701},
		{65_536, maxDeliveries, maxClients, maxClients},
		{64, 16, 16, 16},
	} {
		deliveries, outgoing := deliveriesWithin(test.descriptors)
		got := []int{deliveries, defaultConnections(test.descriptors, 24), defaultConnections(test.descriptors, 20+outgoing)}
		storetest.Equal(t, []int{test.deliveries, test.serve, test.dispatch}, got, "deliveries, and connections of clients, of ", test.descriptors)
		if all := test.dispatch + outgoing + 20 + reservedDescriptors; all > test.descriptors && test.descriptors > 64 {
			t.Errorf("%d descriptors: aiv dispatch may take %d", test.descriptors, all)
		}
	}
}

// TestListenOnFreePorts: only the listener whose default address is in use gets another port, and an address that was
// given is never replaced.
func TestListenOnFreePorts(t *testing.T) {
	listen := func(addr string) net.Listener {
		l, err := Listen(t.Context(), addr)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	// Nobody else takes the free port meanwhile, because other programs use 127.0.0.1.
	taken, free := listen("127.0.0.1:0"), listen(fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), 1+rand.N(254), 1+rand.N(254)))
	addr := free.Addr().String()
	free.Close()
	o := Options{addr: addr, adminAddr: taken.Addr().String()}
	o.mayMove.addr, o.mayMove.adminAddr = true, true
	l, err := o.ListenOnFreePorts(t.Context())
	must(t, err)
	defer l.Close()
	storetest.Equal(t, addr, l.Main.Addr().String(), "main address")
	given := Options{addr: "127.0.0.1:0", adminAddr: taken.Addr().String()}
	if l, err := given.ListenOnFreePorts(t.Context()); err == nil {
		l.Close()
		t.Error("an address that was given and is in use was replaced")
	}
}

func TestNetworkOfMappedAddressesIsIPv4(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1/24": "192.0.2.0/24", "2001:db8::1/32": "2001:db8::/32", "::ffff:192.0.2.1/120": "192.0.2.0/24", "192.0.2.1": "invalid Prefix",
	} {
		if got, _ := parseNetwork(text); got.String() != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}

func TestMain(m *testing.M) {
	databaseTimeout = storetest.Patience
	storetest.Main(m)
}

var must = storetest.Must

// has reports the lines that a page of metrics lacks, and what it contains that it should not.
func has(t *testing.T, page, not string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(page, "\n"+line+"\n") || not != "" && strings.Contains(page, not) {
			t.Errorf("%s is missing, or there is %q:\n%s", line, not, page)
		}
	}
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
	always := []string{`aiv_jobs_claimed_total{provider="p"} 0`, "aiv_database_up 1", "aiv_webhook_pending 0", "aiv_webhook_lag_seconds 0"}
	has(t, page(t.Context()), "", append(always, `aiv_jobs_waiting{provider="p"} 6`, `aiv_jobs_leased{provider="p"} 0`, `aiv_provider_paused{provider="p"} 0`)...)

	storetest.Begin(t, pool, `LOCK TABLE job_queue IN ACCESS EXCLUSIVE MODE`)
	ctx, cancel := context.WithCancel(t.Context())
	blocked := make(chan string)
	go func() { blocked <- page(ctx) }()
	storetest.UntilWaiting(t, pool, "relation")
	cancel()
	has(t, <-blocked, "aiv_jobs_waiting", always...)
	has(t, page(ctx), "aiv_webhook_pending", "aiv_database_up 0")
}

// TestTaskMetrics: a task that has not succeeded yet has no time of its latest success.
func TestTaskMetrics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fault := errors.New("no connection")
		r := task.NewRunner(slog.New(slog.DiscardHandler), []task.Task{
			{Name: "fails", Every: time.Minute, Prompt: true, Run: func(context.Context) error { return fault }},
			{Name: "succeeds", Every: time.Minute, Prompt: true, Run: func(context.Context) error { return nil }},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		r.Run(ctx)
		var page telemetry.Exposition
		writeTasks(r)(t.Context(), &page)
		has(t, page.String(), `seconds{task="fails"}`, `aiv_task_runs_total{task="fails",result="failed"} 2`,
			`aiv_task_runs_total{task="succeeds",result="succeeded"} 2`,
			`aiv_task_last_success_timestamp_seconds{task="succeeds"} 9.4668492e+08`) // 2 min after 2000-01-01
	})
}
