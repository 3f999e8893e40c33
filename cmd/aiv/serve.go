package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/checks"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/systemd"
	"aiv/gateway"
	"aiv/idempotency"
	"aiv/limits"
	"aiv/runs"
	"aiv/store"
	"aiv/store/batch"
)

// serveOptions are the options of `aiv serve` and `aiv demo`.
type serveOptions struct {
	addr, adminAddr string
	tlsCert, tlsKey string
	maxConns        int // to the database
	maxConnections  int // of the public listener; 0: as descriptors allow
	maxPerAddress   int // of those, of one address; 0: half
	adminHosts      []string
	waiting         int            // in each lane
	level           *slog.LevelVar // of the log
	notifier        *systemd.Notifier
	drain           time.Duration
	remember        time.Duration // idempotency keys

	logs     *gateway.LogWriter
	requests *gateway.RequestLog // nil: requests are logged by slog
}

const (
	defaultAddr      = "127.0.0.1:8080"
	defaultAdminAddr = "127.0.0.1:9090"
)

// Bounds of the lanes. A trip beyond its timeout is given up; as many requests may wait as are served in a second or less,
// and as fit into memory: one takes some 20 KiB. To be counted, a trip waits for one lock, 5 s; behind a stranger's, a
// second process would wait for the first one's turn as well, which is cut short.
const (
	countTimeout   = 7 * time.Second
	writeTimeout   = 30 * time.Second
	handlerTimeout = 35 * time.Second
	maxWaiting     = 4_000
)

// minConns is how many connections to the database counting and writing may use at a time: one for each of five batchers,
// and those of the retries of four of them. minReads is the least that is left for reads.
const (
	minConns = 5 + 4*batch.MaxRetries
	minReads = 2
)

// readConns returns how many of the connections to the database are for list and run reads only. The others are reserved
// for counting and writing.
func (o *serveOptions) readConns() int { return min(o.maxConns/3, o.maxConns-minConns) }

// readTimeout bounds the statement of a read.
const readTimeout = 2 * time.Second

// guessDelay is how long the answer to an invalid key takes: 1,000 connections that try keys get 10,000 answers a second,
// which cost a fifth of a core; as fast as they could, they would take all there is.
const guessDelay = 100 * time.Millisecond

func (c *call) serveFlags() func() (serveOptions, error) {
	o := serveOptions{level: new(slog.LevelVar), notifier: &systemd.Notifier{}}
	c.Flags.StringVar(&o.addr, "addr", "", "the `HOST:PORT` of the public listener (environment: AIV_ADDR; default: "+defaultAddr+")")
	c.Flags.StringVar(&o.adminAddr, "admin-addr", "", "the `HOST:PORT` of the admin listener (environment: AIV_ADMIN_ADDR; default: "+defaultAdminAddr+")")
	c.Flags.StringVar(&o.tlsCert, "tls-cert", "", "serve TLS with the certificate in this PEM `FILE`, read again when it changes (environment: AIV_TLS_CERT)")
	c.Flags.StringVar(&o.tlsKey, "tls-key", "", "the certificate's key, a PEM `FILE` (environment: AIV_TLS_KEY)")
	c.Flags.IntVar(&o.maxConns, "max-conns", 24, "the `NUMBER` of connections to the database, at most; a third of them is for reads")
	c.Flags.IntVar(&o.maxConnections, "max-connections", 0, "the `NUMBER` of client connections, at most; more are closed at once (default: 16384, or fewer where descriptors are few)")
	c.Flags.IntVar(&o.maxPerAddress, "max-connections-per-address", 0, "the `NUMBER` of connections of one client address (IPv6: /64 network) (default: half of -max-connections)")
	c.Flags.Func("admin-host", "a `NAME` by which the admin listener is called, besides IP addresses and localhost; may be given more than once", func(name string) error {
		o.adminHosts = append(o.adminHosts, name)
		return nil
	})
	c.Flags.IntVar(&o.waiting, "waiting", maxWaiting, "the `NUMBER` of requests that may wait for the database; those beyond get 503 overloaded")
	c.Flags.DurationVar(&o.drain, "drain", 30*time.Second, "how `LONG` requests may take to end after SIGTERM")
	c.Flags.DurationVar(&o.remember, "remember", 24*time.Hour, "how `LONG` idempotency keys are remembered; at least 24h")
	return func() (serveOptions, error) {
		o.addr = cmp.Or(o.addr, c.Getenv("AIV_ADDR"), defaultAddr)
		o.adminAddr = cmp.Or(o.adminAddr, c.Getenv("AIV_ADMIN_ADDR"), defaultAdminAddr)
		o.tlsCert = cmp.Or(o.tlsCert, c.Getenv("AIV_TLS_CERT"))
		o.tlsKey = cmp.Or(o.tlsKey, c.Getenv("AIV_TLS_KEY"))
		switch {
		case (o.tlsCert == "") != (o.tlsKey == ""):
			return o, c.Wrong("-tls-cert and -tls-key go together")
		case o.maxConns < minConns:
			return o, c.Wrong("-max-conns must be at least %d", minConns)
		case o.waiting < 1:
			return o, c.Wrong("-waiting must be at least 1")
		case o.drain < 0:
			return o, c.Wrong("-drain can't be negative")
		case o.remember < 24*time.Hour:
			return o, c.Wrong("-remember must be at least 24h, which clients are promised")
		}
		return o, nil
	}
}

func serve(ctx context.Context, c *call) error {
	c.databaseFlags()
	options := c.serveFlags()
	migrateFirst := c.Flags.Bool("migrate", false, "apply missing migrations before serving")
	if _, err := c.Parse(); err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	if o.notifier, err = systemd.NewNotifier(); err != nil {
		return err
	}
	log := c.logger(&o)
	defer surviveSignals(log)()
	defer o.logs.Close()
	if !cli.IsTerminal(c.Stderr) {
		o.requests = gateway.NewRequestLog(o.logs)
	}
	pool, closeDatabase, err := openDatabase(ctx, source, int32(o.maxConns-o.readConns()), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	if *migrateFirst {
		applied, err := store.MigrateConfig{Report: func(line string) { log.Warn(line) }}.Migrate(ctx, pool)
		if err != nil {
			return err
		}
		for _, m := range applied {
			log.Info("migration applied", "migration", m.String())
		}
	}
	if err := upToDate(ctx, pool); err != nil {
		return err
	}
	if err := store.VerifySession(ctx, pool); err != nil {
		return err
	}
	durable, err := store.Durable(ctx, pool)
	if err != nil {
		return err
	}
	if !durable {
		log.Warn("the database may lose committed transactions in a crash: fsync or synchronous_commit is off")
	}
	public, admin, err := o.listenOrTake(ctx, c.Getenv)
	if err != nil {
		return err
	}
	return o.serve(ctx, pool, log, public, admin)
}

func upToDate(ctx context.Context, pool *pgxpool.Pool) error {
	status, err := store.MigrationStatus(ctx, pool)
	if err != nil {
		return err
	}
	return status.Err()
}

// listenOrTake returns the listeners passed by systemd, and opens those that were not passed.
func (o *serveOptions) listenOrTake(ctx context.Context, getenv func(string) string) (public, admin net.Listener, err error) {
	public, admin, err = systemd.Listeners(getenv)
	var config net.ListenConfig
	if err == nil && public == nil {
		public, err = config.Listen(ctx, "tcp", o.addr)
	}
	if err == nil && admin == nil {
		admin, err = config.Listen(ctx, "tcp", o.adminAddr)
	}
	if err != nil && public != nil {
		public.Close()
	}
	return public, admin, err
}

func (o *serveOptions) listen(ctx context.Context) (public, admin net.Listener, err error) {
	var config net.ListenConfig
	if public, err = config.Listen(ctx, "tcp", o.addr); err != nil {
		return nil, nil, err
	}
	if admin, err = config.Listen(ctx, "tcp", o.adminAddr); err != nil {
		public.Close()
		return nil, nil, err
	}
	return public, admin, nil
}

// serve wires the packages and serves both listeners until ctx is done and the requests in progress have ended.
func (o *serveOptions) serve(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, public, admin net.Listener) error {
	tune(pool)
	metrics := gateway.NewMetrics()
	reads, err := store.OpenReads(ctx, pool, int32(o.readConns()), readTimeout)
	if err != nil {
		return err
	}
	defer reads.Close()
	handler, err := o.newGateway(ctx, pool, reads, log, metrics)
	if err != nil {
		return err
	}
	maxConnections := cmp.Or(o.maxConnections, defaultConnections(o.maxConns))
	listener := gateway.NewListener(public, gateway.ListenerConfig{
		Max: maxConnections, MaxPerAddress: cmp.Or(o.maxPerAddress, max(1, maxConnections/2)), Log: log,
	})
	public = listener
	metrics.Also(listener.WriteMetrics)
	metrics.Also(o.logs.WriteMetrics)
	server := gateway.NewServer(handler, log)
	if o.tlsCert != "" {
		certificate, err := gateway.NewCertificate(o.tlsCert, o.tlsKey, log)
		if err != nil {
			return err
		}
		server.TLSConfig = certificate.Config()
	}

	// The admin listener continues while the public one drains: /readyz reports it.
	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()
	adminServer := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: gateway.Admin(gateway.AdminConfig{Metrics: metrics, Level: o.level, Hosts: o.adminHosts, Ready: func(asked context.Context) error {
		if ctx.Err() != nil {
			return errors.New("shutting down")
		}
		// A newer binary's migrations, applied while this one serves, only add to what it needs: it is ready until it is
		// replaced, or an upgrade would take all instances out at once.
		err := upToDate(asked, pool)
		if _, newer := errors.AsType[*store.NewerError](err); newer {
			return nil
		}
		return err
	}})}
	adminEnded := make(chan error, 1)
	go func() { adminEnded <- gateway.Serve(adminCtx, adminServer, admin, time.Second) }()
	go maintain(ctx, pool, log, o.remember)
	go warnOfExpiry(ctx, pool, log)
	go o.notifier.Watch(adminCtx, admin.Addr(), log)

	log.Info("serving", "address", public.Addr().String(), "path", gateway.Base, "admin", admin.Addr().String(), "tls", o.tlsCert != "")
	o.notifySystemd("READY=1\nSTATUS=Serving "+public.Addr().String()+gateway.Base, log)
	told := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(told)
		o.notifySystemd("STOPPING=1\nSTATUS=Ending the requests in progress", log)
	})
	err = gateway.Serve(ctx, server, public, o.drain)
	if ctx.Err() != nil {
		<-told
	}
	stopAdmin()
	log.Info("stopped")
	if err != nil {
		return fmt.Errorf("serving %s: %w", public.Addr(), err)
	}
	// Who still looks at a profile, or has connected and not asked yet, does not make this a failure.
	if err := <-adminEnded; !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

func (o *serveOptions) notifySystemd(state string, log *slog.Logger) {
	if err := o.notifier.Notify(state); err != nil {
		log.Error("systemd not notified", "error", err)
	}
}

// newGateway wires the packages.
func (o *serveOptions) newGateway(ctx context.Context, pool, reads *pgxpool.Pool, log *slog.Logger, metrics *gateway.Metrics) (*gateway.Gateway, error) {
	secret, err := store.Secret(ctx, pool, "cursor")
	if err != nil {
		return nil, err
	}
	shelf := catalog.New(pool)
	limiter := limits.New(limits.Config{Pool: pool, Timeout: countTimeout, MaxWaiting: o.waiting, CatalogRevision: catalog.RevisionSQL})
	writer := runs.New(runs.Config{
		Pool: pool, Reads: reads, Checks: &checks.Registry{Checks: checks.Standard(), Catalog: shelf},
		NewID: store.NewID, Timeout: writeTimeout, MaxWaiting: o.waiting,
	})
	metrics.Also(writeRequests(limiter, writer))
	metrics.Also(writePools(pool, reads))
	metrics.Also(writeDatabase(pool))
	metrics.Also(writeProcess(time.Now()))
	return gateway.New(gateway.Config{
		Limits:       limiter,
		Runs:         writer,
		Catalog:      shelf,
		Reads:        reads,
		MaxReads:     o.readConns(),
		MaxWaiting:   o.waiting,
		CursorSecret: secret,
		Log:          log,
		Requests:     o.requests,
		NewID:        store.NewID,
		Timeout:      handlerTimeout,
		Delay:        guessDelay,
		Metrics:      metrics,
	}), nil
}

// maintain deletes what is too old to be needed, now and every 10 minutes: idempotency keys, and counts of past minutes.
func maintain(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, keep time.Duration) {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		for _, purge := range []struct {
			what string
			run  func() (int64, error)
		}{
			{"idempotency keys", func() (int64, error) { return idempotency.Purge(ctx, pool, keep) }},
			{"rate limit windows", func() (int64, error) { return limits.Purge(ctx, pool) }},
		} {
			rows, err := purge.run()
			if err != nil && ctx.Err() == nil {
				log.Error("purging "+purge.what, "error", err)
			} else if rows > 0 {
				log.Info("purged "+purge.what, "rows", rows)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// warnOfExpiry warns of the credentials that expire soon, now and once a day.
func warnOfExpiry(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) {
	const most = 20
	tick := time.NewTicker(24 * time.Hour)
	defer tick.Stop()
	for {
		expiring, err := auth.ReadExpiring(ctx, pool, expirySoon, maxCounted)
		if err != nil && ctx.Err() == nil {
			log.Error("looking for keys that expire soon", "error", err)
		}
		for i, k := range expiring {
			if i == most {
				log.Warn("more keys expire soon", "keys", len(expiring)-most)
				break
			}
			log.Warn("a key expires soon", "credential", k.ID.Text("cred"), "account", k.AccountID.Text("acct"), "name", k.Name,
				"key_prefix", k.KeyPrefix, "expires_at", wireTime(k.ExpiresAt))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// logger returns the log of a server: text on a terminal, else JSON, written in the background by o.logs. Its level can be
// changed while it is used.
func (c *call) logger(o *serveOptions) *slog.Logger {
	o.logs = gateway.NewLogWriter(c.Stderr)
	options := &slog.HandlerOptions{Level: o.level}
	if cli.IsTerminal(c.Stderr) {
		return slog.New(slog.NewTextHandler(o.logs, options))
	}
	return slog.New(slog.NewJSONHandler(o.logs, options))
}
