package service

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/systemd"
	"aiv/gateway/httpserver"
	"aiv/gateway/worker"
	"aiv/insights/events"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/delivery"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/batch"
	"aiv/store/schema"
)

// minDispatchConns is how many connections to the database aiv dispatch may use at a time: one for each of three batchers
// and the retries of one, two for maintenance, one for metrics, and four for webhooks.
const minDispatchConns = 3 + batch.MaxRetries + 2 + 1 + 4

// Dispatch is the service of aiv dispatch.
type Dispatch struct {
	Options
	answersKept time.Duration  // 0: forever
	webhookDeny []netip.Prefix // besides the addresses that are not public

	// Beside runs with the dispatcher until its context is done; nil: nothing does.
	Beside func(context.Context, *jobs.Dispatcher)
}

var dispatchDefaults = defaults{Addr: "127.0.0.1:8081", AdminAddr: "127.0.0.1:9190", AddrVariable: "AIV_WORKER_ADDR", MaxConns: 20,
	MaxConnsUsage: "the maximum `NUMBER` of connections to the database"}

// WorkerAddrFlag is the flag of aiv demo for the address of SampleDispatch, and its variable.
const WorkerAddrFlag = "-worker-addr (AIV_WORKER_ADDR)"

// SampleDispatch returns a service for the same process as s, at addresses of its own. addr is the address for workers; if empty, the default.
func SampleDispatch(s *Serve, addr string) *Dispatch {
	o := &Dispatch{Options: s.Options}
	o.defaults, o.addr, o.adminAddr, o.maxConns = dispatchDefaults, cmp.Or(addr, dispatchDefaults.Addr), dispatchDefaults.AdminAddr, minDispatchConns
	o.tlsCert, o.tlsKey, o.notifier, o.addrFlag = "", "", &systemd.Notifier{}, WorkerAddrFlag
	return o
}

// Flags declares the flags of aiv dispatch. After they are parsed, the function returned reads and checks them.
func (o *Dispatch) Flags(c *cli.Call) func() error {
	check := o.flags(c, dispatchDefaults, minDispatchConns)
	o.privateWebhooksFlag(c)
	c.DurationFlag(&o.answersKept, "answers-kept", 0, "the `DURATION` for which answers are kept after their job ended, such as 400d or 36h; at least 24h (default: forever)")
	prefixesFlag(c, &o.webhookDeny, "webhook-deny", "connect to no webhook in these networks: a comma-separated `LIST` such as 192.0.2.0/24; addresses that are not public are always denied")
	return func() (err error) {
		if err := check(); err != nil {
			return err
		}
		if c.Given("answers-kept") && o.answersKept < jobs.MinAnswersKept {
			return c.Wrong("-answers-kept must be at least 24h, such as 400d")
		}
		return nil
	}
}

// Conns returns how many connections the pool given to Run needs.
func (o *Dispatch) Conns() int32 { return int32(o.maxConns) }

// Run wires the packages and serves workers until ctx is done and the requests in progress have ended.
func (o *Dispatch) Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, l Listeners) error {
	master, err := webhooks.OpenMaster(ctx, pool, o.webhooks.masterFile)
	if err != nil {
		return err
	}
	dispatcher := jobs.New(jobs.Config{Pool: pool, Timeout: writeTimeout, MaxWaiting: o.waiting, Log: log, Finished: RecordFinished})
	requests, connections := deliveriesWithin(maxDescriptors())
	o.outgoing = connections
	deliveries := delivery.New(delivery.Config{
		Pool: pool, Master: master, AllowPrivate: o.webhooks.allowPrivate, Deny: o.webhookDeny, InFlight: requests, Log: log,
	})
	metrics := worker.NewMetrics()
	metrics.Also(writeJobs(dispatcher))
	metrics.Also(writeDeliveries(deliveries))
	metrics.Also(writeBacklogs(pool, dispatcher))
	metrics.Also(writePools(pools{{"dispatch", pool}}))
	metrics.Also(writeProcess(time.Now()))
	handler := worker.New(worker.Config{
		Jobs: dispatcher, Workers: auth.NewWorkerLookup(pool, countTimeout, o.waiting), NewID: store.NewID, Timeout: handlerTimeout, Delay: guessDelay,
		Log: log, Requests: o.requests, Metrics: metrics,
	})
	s := &service{Options: &o.Options, name: schema.Dispatch, pool: pool, log: log, metrics: metrics, server: httpserver.NewWatching(handler, log), path: worker.Base}
	s.background = append(s.background, dispatcher.Run, deliveries.Run, func(ctx context.Context) {
		repeat(ctx, log, time.Hour, chore{"purging answers", func(ctx context.Context) (int64, error) { return jobs.Purge(ctx, pool, o.answersKept) }})
	}, func(ctx context.Context) {
		repeat(ctx, log, time.Minute, chore{"purging events", func(ctx context.Context) (int64, error) {
			n, err := events.Purge(ctx, pool)
			if err == nil {
				err = webhooks.Purge(ctx, pool)
			}
			return n, err
		}})
	})
	if o.Beside != nil {
		s.background = append(s.background, func(ctx context.Context) { o.Beside(ctx, dispatcher) })
	}
	return s.run(ctx, l)
}
