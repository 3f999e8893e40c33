package service

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/checks"
	"aiv/cmd/aiv/internal/cli"
	"aiv/gateway"
	"aiv/gateway/httpserver"
	"aiv/gateway/telemetry"
	"aiv/idempotency"
	"aiv/insights/brands/match"
	"aiv/insights/webhooks"
	"aiv/limits"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/batch"
	"aiv/store/schema"
	"aiv/store/task"
)

// Serve is the service of aiv serve.
type Serve struct {
	Options
	remember time.Duration // idempotency keys
	standby  string        // URL; empty: none
	maxLag   time.Duration // of the standby
}

// Run serves the public API until ctx is done and the requests in progress have ended. Counting, writing, reads and
// background tasks have separate pools, so that slow work of one kind cannot take the connections of another. The
// sessions of pool, which is for writing, are hot (package store).
func (o *Serve) Run(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, l Listeners) error {
	counts, err := limits.OpenCounts(ctx, pool)
	if err != nil {
		return err
	}
	defer counts.Close()
	reads, err := store.OpenAnother(ctx, pool, int32(o.readConns()), "statement_timeout", readTimeout)
	if err != nil {
		return err
	}
	defer reads.Close()
	background, err := store.OpenPlain(ctx, pool, backgroundConns)
	if err != nil {
		return err
	}
	defer background.Close()
	var standby *store.Standby
	if o.standby != "" {
		standby, err = store.OpenStandby(ctx, store.StandbyConfig{
			URL: o.standby, Primary: reads, MaxConns: int32(o.readConns()), Timeout: readTimeout, MaxLag: o.maxLag, Log: log,
		})
		if err != nil {
			return err
		}
		defer standby.Close()
		// The pool of the standby has one more connection, for checks.
		o.outgoing = o.readConns() + 1
	}
	metrics := gateway.NewMetrics()
	handler, err := o.newGateway(ctx, pool, counts, reads, background, standby, log, metrics)
	if err != nil {
		return err
	}
	s := &service{Options: &o.Options, name: schema.Serve, pool: pool, log: log, metrics: metrics, server: httpserver.New(handler, log), path: gateway.Base}
	s.tasks = o.tasks(background, log)
	if standby != nil {
		s.tasks = append(s.tasks, standby.Task())
	}
	return s.run(ctx, l)
}

// newGateway returns the gateway with what it depends on.
func (o *Serve) newGateway(ctx context.Context, pool, counts, reads, background *pgxpool.Pool, standby *store.Standby, log *slog.Logger,
	metrics *telemetry.Metrics) (*gateway.Gateway, error) {
	// With a standby, each count also returns the position of the log, which the standby must have reached to serve the
	// reads of the request.
	position := ""
	if standby != nil {
		position = store.WALPosition
	}
	limiter := limits.New(limits.Config{
		Pool: pool, Counts: counts, Timeout: countTimeout, MaxWaiting: o.waiting, CatalogRevision: catalog.RevisionSQL, WALPosition: position,
	})
	secret, err := store.Secret(ctx, pool, "cursor")
	if err != nil {
		return nil, err
	}
	// The secrets that are shown to customers must be those that aiv dispatch signs with.
	master, err := webhooks.OpenMaster(ctx, pool, o.webhooks.masterFile)
	if err != nil {
		return nil, err
	}
	models := catalog.New(pool)
	writer := runs.New(runs.Config{
		Pool: pool, Reads: reads, Checks: &checks.Registry{Checks: checks.Standard(), Catalog: models},
		NewID: store.NewID, Timeout: writeTimeout, ReadTimeout: readTimeout + time.Second, MaxWaiting: o.waiting, Enqueue: jobs.EnqueueSQL, Finished: RecordFinished,
	})
	g := gateway.New(gateway.Config{
		Limits:       limiter,
		Runs:         writer,
		Catalog:      models,
		Reads:        reads,
		Standby:      standby,
		Webhooks:     webhooks.New(webhooks.Config{Pool: reads, Master: master, AllowPrivate: o.webhooks.allowPrivate, NewID: store.NewID}),
		Schedules:    schedules.New(schedules.Config{Pool: reads, NewID: store.NewID, Record: webhooks.Record, Events: gateway.EventData{}}),
		Questions:    catalog.NewOwnQuestions(catalog.OwnConfig{Pool: reads, NewID: store.NewID, NormalForm: match.NormalForm}),
		MaxReads:     o.readConns() - 1, // one reads single runs
		MaxWaiting:   o.waiting,
		CursorSecret: secret,
		Log:          log,
		Requests:     o.requests,
		NewID:        store.NewID,
		Timeout:      handlerTimeout,
		Delay:        guessDelay,
		Metrics:      metrics,
		Version:      ThisBuild().Version,
	})

	all := pools{{"count", counts}, {"write", pool}, {"read", reads}, {"background", background}}
	if standby != nil {
		all = append(all, namedPool{"standby", standby.Pool()})
		metrics.Also(writeStandby(standby))
	}
	metrics.Also(writeRequests(limiter, writer))
	metrics.Also(writePools(all))
	metrics.Also(writeDatabase(background))
	metrics.Also(writeProcess(time.Now()))
	metrics.Also(g.WriteToolCalls)
	return g, nil
}

// tasks returns what aiv serve does in the background at intervals. All processes do it.
func (o *Serve) tasks(pool *pgxpool.Pool, log *slog.Logger) []task.Task {
	return []task.Task{
		{
			Name: "purge_idempotency_keys", Every: 10 * time.Minute, Timeout: purgeTimeout,
			Run: logRows(log, "purged idempotency keys", func(ctx context.Context) (int64, error) {
				return idempotency.Purge(ctx, pool, o.remember)
			}),
		},
		{
			Name: "purge_rate_limits", Every: 10 * time.Minute, Timeout: purgeTimeout,
			Run: logRows(log, "purged rate limit windows", func(ctx context.Context) (int64, error) { return limits.Purge(ctx, pool) }),
		},
		{Name: "warn_of_expiring_keys", Every: 24 * time.Hour, Timeout: time.Minute, Run: warnOfExpiry(pool, log)},
	}
}

// Bounds of the batchers. A batch ends at its timeout. In a batch of counts, each wait for a locked row also ends after
// 500 ms (limits.OpenCounts). maxWaiting is about as many requests as are served in a second or less; each takes about
// 20 KiB.
const (
	countTimeout   = 7 * time.Second
	writeTimeout   = 30 * time.Second
	handlerTimeout = 35 * time.Second
	maxWaiting     = 4_000
)

// minConns connections to the database are reserved for counting, writing and background tasks: one for each of five
// batchers, and the connections of the retries of four of them. The batchers of large metered runs and of the catalog
// share them. At least minReads connections are left for reads.
const (
	minConns = 5 + 4*batch.MaxRetries + backgroundConns
	minReads = 2
)

// readTimeout bounds the statement of a read.
const readTimeout = 2 * time.Second

// maxReadLag bounds -read-max-lag. The gateway bounds the reads at a time, and reads that wait for the standby are
// among them. Other reads wait no longer for their turn than this.
const maxReadLag = 2 * time.Second

// guessDelay delays each response to an invalid key: 1,000 connections that try keys get 10,000 responses a second,
// which cost a fifth of a core. Without the delay they would use all processors.
const guessDelay = 100 * time.Millisecond

// readConns returns how many of the connections to the database are for list and run reads only. The others are
// reserved for counting, writing and background tasks.
func (o *Serve) readConns() int { return min(o.maxConns/3, o.maxConns-minConns) }

// WriteConns returns how many connections the pool given to Run needs. One more counts requests.
func (o *Serve) WriteConns() int32 { return int32(o.maxConns - o.readConns() - 1 - backgroundConns) }

// Flags declares the flags of aiv serve. After they are parsed, the function returned reads and checks them.
func (o *Serve) Flags(c *cli.Call) func() error {
	check := o.commonFlags(c)
	o.privateWebhooksFlag(c)
	c.Flags.StringVar(&o.standby, "read-url", "", "read lists and results from the hot standby at this `URL` when it has all that was committed before the request, else from the database (environment: AIV_READ_URL, which ps does not show)")
	c.DurationFlag(&o.maxLag, "read-max-lag", 50*time.Millisecond, "the `DURATION` for which a read waits for the standby to catch up; at most 2s; while the standby is further behind, reads do not use it")
	return func() error {
		if err := check(); err != nil {
			return err
		}
		o.standby = cmp.Or(o.standby, c.Getenv("AIV_READ_URL"))
		switch {
		case o.maxLag <= 0:
			return c.Wrong("-read-max-lag must be more than 0")
		case o.maxLag > maxReadLag:
			return c.Wrong("-read-max-lag must be at most %v", maxReadLag)
		case c.Given("read-max-lag") && o.standby == "":
			return c.Wrong("-read-max-lag requires -read-url (AIV_READ_URL)")
		}
		return nil
	}
}

// SampleFlags declares the flags of aiv demo: it reads from no standby, and its webhooks may have private addresses.
func (o *Serve) SampleFlags(c *cli.Call) func() error {
	o.webhooks.allowPrivate = true
	return o.commonFlags(c)
}

// commonFlags declares the flags that aiv serve and aiv demo have.
func (o *Serve) commonFlags(c *cli.Call) func() error {
	check := o.flags(c, defaults{Addr: "127.0.0.1:8080", AdminAddr: "127.0.0.1:9090", AddrVariable: "AIV_ADDR", MaxConns: 24,
		MaxConnsUsage: "the maximum `NUMBER` of connections to the database; up to a third of them is for reads only"}, minConns+minReads)
	c.DurationFlag(&o.remember, "remember", 24*time.Hour, "the `DURATION` for which idempotency keys are remembered; at least 24h")
	return func() error {
		if err := check(); err != nil {
			return err
		}
		if o.remember < 24*time.Hour {
			return c.Wrong("-remember must be at least 24h: clients are promised that time")
		}
		return nil
	}
}
