package service

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/counting"
	"aiv/cmd/aiv/internal/systemd"
	"aiv/gateway/httpserver"
	"aiv/gateway/worker"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/insights/webhooks/delivery"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/batch"
	"aiv/store/schema"
	"aiv/store/task"
)

// minDispatchConns is the number of connections to the database that aiv dispatch may use at a time: one for each of
// three batchers and the retries of one, two for maintenance, four for webhooks, and the connections of schedules and
// of background tasks.
const minDispatchConns = 3 + batch.MaxRetries + 2 + 4 + schedules.CarryOutWorkers + 1 + backgroundConns

// Dispatch is the service of aiv dispatch.
type Dispatch struct {
	Options
	answersKept time.Duration  // 0: forever
	webhookDeny []netip.Prefix // besides the addresses that are not public

	// Beside is run in the background with the dispatcher, until its context is done. It may be nil.
	Beside func(context.Context, *jobs.Dispatcher)
}

// dispatchDefaults has other ports than the defaults of aiv serve, so that both services can run on one machine.
var dispatchDefaults = defaults{Addr: "127.0.0.1:8081", AdminAddr: "127.0.0.1:9190", AddrVariable: "AIV_WORKER_ADDR", MaxConns: 20,
	MaxConnsUsage: "the maximum `NUMBER` of connections to the database"}

// WorkerAddrFlag is the flag of aiv demo for the address of SampleDispatch, and its variable.
const WorkerAddrFlag = "-worker-addr (AIV_WORKER_ADDR)"

// SampleDispatch returns a service for the same process as s, at separate addresses. addr is the address for workers;
// if empty, the default.
func SampleDispatch(s *Serve, addr string) *Dispatch {
	// A copy of all options of s, such as the bounds and the webhooks. The addresses, TLS and systemd are not shared.
	o := &Dispatch{Options: s.Options}
	o.addr, o.adminAddr, o.maxConns = cmp.Or(addr, dispatchDefaults.Addr), dispatchDefaults.AdminAddr, minDispatchConns
	o.mayMove.addr, o.mayMove.adminAddr = addr == "", true
	o.tlsCert, o.tlsKey, o.notifier, o.addrFlag = "", "", &systemd.Notifier{}, WorkerAddrFlag
	return o
}

// Flags declares the flags of aiv dispatch. After they are parsed, the function returned reads and checks them.
func (o *Dispatch) Flags(c *cli.Call) func() error {
	check := o.flags(c, dispatchDefaults, minDispatchConns)
	o.privateWebhooksFlag(c)
	c.DurationFlag(&o.answersKept, "answers-kept", 0, "the `DURATION` for which answers are kept after their job ended, such as 400d or 36h; at least 24h (default: forever)")
	networksFlag(c, &o.webhookDeny, "webhook-deny", "connect to no webhook in these networks: a comma-separated `LIST` such as 192.0.2.0/24; addresses that are not public are always denied")
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

// Conns returns how many connections the pool given to Run needs. Background tasks have others.
func (o *Dispatch) Conns() int32 { return int32(o.maxConns - backgroundConns) }

// Run serves workers until ctx is done and the requests in progress have ended. The sessions of pool are hot.
func (o *Dispatch) Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, l Listeners) error {
	background, err := store.OpenPlain(ctx, pool, backgroundConns)
	if err != nil {
		return err
	}
	defer background.Close()
	master, err := webhooks.OpenMaster(ctx, pool, o.webhooks.masterFile)
	if err != nil {
		return err
	}
	outage := store.NewOutage(pool, log)
	counter := counting.New(background, outage)
	dispatcher := jobs.New(jobs.Config{
		Pool: pool, Timeout: writeTimeout, MaxWaiting: o.waiting, Outage: outage,
		Count: counting.Count(counter), Prepare: counting.Prepare(counter), Finished: RecordFinished,
	})
	scheduler := newScheduler(pool, o.waiting, outage, log)
	requests, connections := deliveriesWithin(maxDescriptors())
	// run subtracts them from the client connections that the descriptors allow.
	o.outgoing = connections
	deliveries := delivery.New(delivery.Config{
		Pool: pool, Master: master, AllowPrivate: o.webhooks.allowPrivate, Deny: o.webhookDeny, InFlight: requests,
		Outage: outage, Log: log,
	})
	metrics := worker.NewMetrics()
	metrics.Also(writeJobs(dispatcher))
	metrics.Also(writeDeliveries(deliveries))
	metrics.Also(writeSchedules(background, scheduler))
	metrics.Also(writeBacklogs(background, dispatcher))
	metrics.Also(writeRecounts(background, counter))
	metrics.Also(writePools(pools{{"dispatch", pool}, {"background", background}}))
	metrics.Also(writeProcess(time.Now()))
	handler := worker.New(worker.Config{
		Jobs: dispatcher, Workers: auth.NewWorkerLookup(pool, countTimeout, o.waiting), NewID: store.NewID, Timeout: handlerTimeout, Delay: guessDelay,
		Log: log, Requests: o.requests, Metrics: metrics,
	})
	s := &service{Options: &o.Options, name: schema.Dispatch, pool: pool, log: log, metrics: metrics, server: httpserver.New(handler, log), path: worker.Base}
	s.tasks = slices.Concat(dispatcher.Tasks(), scheduler.Tasks(), deliveries.Tasks(), o.tasks(background, counter, outage, log))
	// The tasks only begin deliveries; end waits for the requests in flight and writes their outcomes.
	s.end = deliveries.End
	if o.Beside != nil {
		s.beside = func(ctx context.Context) { o.Beside(ctx, dispatcher) }
	}
	// Claims that wait for jobs end at once when the process is asked to end.
	defer dispatcher.Stop()
	defer context.AfterFunc(ctx, dispatcher.Stop)()
	return s.run(ctx, l)
}

// tasks returns what aiv dispatch does in the background at intervals, besides the tasks of its dispatchers. All
// processes do it.
func (o *Dispatch) tasks(pool *pgxpool.Pool, counter *visibility.Counter, outage *store.Outage, log *slog.Logger) []task.Task {
	return []task.Task{
		// The work of accounts on a server that was lost waits for this task.
		{Name: "watch_servers", Every: time.Second, Timeout: 10 * time.Second, Prompt: true, Run: outage.Update},
		{
			Name: "purge_answers", Every: time.Hour, Timeout: purgeTimeout,
			Run: logRows(log, "purged answers", func(ctx context.Context) (int64, error) {
				return jobs.Purge(ctx, pool, o.answersKept, visibility.DeleteAnswers)
			}),
		},
		// A changed brand is counted within seconds.
		{Name: "recount_answers", Every: time.Second, Timeout: purgeTimeout, Prompt: true, Run: logRows(log, "recounted answers", counter.Recount)},
		{Name: "merge_facts", Every: 10 * time.Second, Timeout: purgeTimeout, Run: func(ctx context.Context) error {
			_, err := counter.Merge(ctx)
			return err
		}},
		{Name: "find_uncounted_answers", Every: time.Hour, Timeout: purgeTimeout, Run: counter.FindUncounted},
		{
			Name: "purge_events", Every: time.Minute, Timeout: purgeTimeout,
			Run: logRows(log, "purged events", func(ctx context.Context) (int64, error) {
				n, err := events.Purge(ctx, pool)
				if err != nil {
					return n, err
				}
				return n, webhooks.Purge(ctx, pool)
			}),
		},
	}
}
