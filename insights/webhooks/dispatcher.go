package webhooks

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Limits bounds what a Dispatcher does at a time. Those of accounts and endpoints hold over all processes.
type Limits struct {
	InFlight    int // requests of this process; it keeps half as many idle connections
	PerAccount  int
	PerEndpoint int
	Accounts    int // that this process owns
	Bytes       int // of event data in memory
}

// DefaultLimits returns the limits that the API promises.
func DefaultLimits() Limits {
	return Limits{InFlight: 1024, PerAccount: 16, PerEndpoint: 4, Accounts: 1024, Bytes: 48 << 20}
}

const (
	leaseTime   = 45 * time.Second // with the time until another process looks, below a minute
	renewEvery  = 10 * time.Second
	yieldAfter  = 5 * time.Second // of owning an account while others wait
	pollEvery   = 100 * time.Millisecond
	purgeEvery  = time.Minute
	finalCommit = 10 * time.Second
)

// DispatcherConfig is what a Dispatcher needs.
type DispatcherConfig struct {
	Pool         *pgxpool.Pool
	Master       *Master
	AllowPrivate bool           // allow addresses that are not public
	Deny         []netip.Prefix // allow none of these
	Limits       Limits         // zero: DefaultLimits
	Log          *slog.Logger
}

// A Dispatcher delivers events. Any number of processes may run one.
//
// A process claims accounts whose deliveries are due, and owns each until it has nothing due, or its lease ends because
// the process has. Goroutines share the work: one claims accounts and reads due deliveries, one writes outcomes in
// groups, one renews leases, one deletes what is older than Retention, and one looks for lost servers of a cluster. Each
// attempt has a goroutine.
type Dispatcher struct {
	cfg    DispatcherConfig
	id     store.ID // of this process, as the owner of accounts
	sender *sender
	outage *store.Outage

	renewEvery time.Duration // shorter in tests

	feed   chan struct{} // filled when an endpoint needs deliveries
	commit chan struct{} // filled when there are outcomes

	mu       sync.Mutex // guards what follows
	turns    turns
	accounts map[store.ID]*account
	outcomes []outcome
	stopping bool
	stats    Stats
	attempts sync.WaitGroup
}

// NewDispatcher returns a dispatcher that does not run yet.
func NewDispatcher(cfg DispatcherConfig) *Dispatcher {
	if cfg.Limits == (Limits{}) {
		cfg.Limits = DefaultLimits()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &guard{allowPrivate: cfg.AllowPrivate, deny: cfg.Deny, resolver: net.DefaultResolver, timeout: attemptTimeout}
	return &Dispatcher{
		cfg: cfg, id: store.NewID(), sender: newSender(g, cfg.Limits.InFlight/2),
		outage:     store.NewOutage(cfg.Pool, cfg.Log, "webhooks of their accounts are not delivered"),
		renewEvery: renewEvery,
		feed:       make(chan struct{}, 1), commit: make(chan struct{}, 1),
		turns: turns{limits: cfg.Limits}, accounts: make(map[store.ID]*account),
	}
}

// Run delivers until ctx ends. Then it starts no attempt, lets those under way end, and gives its accounts back.
func (d *Dispatcher) Run(ctx context.Context) {
	// Attempts and the writing of their outcomes outlast ctx.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var loops, last sync.WaitGroup
	loops.Go(func() { d.runFeed(ctx, work) })
	loops.Go(func() { d.runPurge(ctx) })
	loops.Go(func() { d.runOutage(ctx) })
	last.Go(func() { d.runCommit(work) })
	last.Go(func() { d.runRenew(work) })

	<-ctx.Done()
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	loops.Wait()
	d.attempts.Wait()
	stop()
	last.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalCommit)
	defer cancel()
	d.finish(end)
	d.sender.transport.CloseIdleConnections()
}

// finish writes the last outcomes and gives all accounts back.
func (d *Dispatcher) finish(ctx context.Context) {
	err := d.writeOutcomes(ctx)
	if err == nil {
		_, err = d.cfg.Pool.Exec(ctx, yieldAccounts, d.owned(), d.id)
	}
	if err != nil {
		d.cfg.Log.Warn("webhooks: accounts are given back when their leases end", "error", err)
	}
}

// start starts attempts as the limits allow. d.mu is held.
func (d *Dispatcher) start(ctx context.Context) {
	now := time.Now()
	for !d.stopping {
		next := d.turns.next(now)
		if next == nil {
			return
		}
		e := next.endpoint
		url, keys, unhealthy := e.url, e.keys, e.unhealthy
		d.attempts.Go(func() {
			began := time.Now()
			r := d.sender.send(ctx, url, headers(next.event, began, next.body, keys...), next.body)
			d.end(ctx, next, url, unhealthy, r, began)
		})
		if len(e.ready) < e.fetch.size/2 && !e.fetch.ended() {
			notify(d.feed)
		}
	}
}

// end takes the result of an attempt and starts others in its stead.
func (d *Dispatcher) end(ctx context.Context, ended *delivery, url string, wasUnhealthy bool, r result, began time.Time) {
	o := newOutcome(ended, url, r)
	d.mu.Lock()
	defer d.mu.Unlock()
	e := ended.endpoint
	d.turns.end(e, wasUnhealthy)
	e.unhealthy = r.err != ""
	if o.gone && url == e.url {
		e.gone = true
		d.turns.dropReady(e)
	}
	d.outcomes = append(d.outcomes, o)
	d.stats.count(r, time.Since(began))
	notify(d.commit)
	d.turns.add(e.account)
	d.start(ctx)
	if len(e.ready) == 0 {
		notify(d.feed)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
