// Package delivery sends events to endpoints, after [Standard Webhooks].
//
// It owns no table. It claims rows of webhook_queues and writes the outcomes of attempts to webhook_deliveries and
// webhook_endpoints. Package webhooks owns these tables and documents the order in which rows are locked. Command aiv
// dispatch runs a Dispatcher. Command aiv webhooks listen verifies deliveries with a Receiver.
//
// [Standard Webhooks]: https://www.standardwebhooks.com
package delivery

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/task"
)

const (
	leaseTime   = 45 * time.Second // with the time until another process looks, below a minute
	renewEvery  = 10 * time.Second
	yieldAfter  = 5 * time.Second // of owning an account while others wait
	pollEvery   = 100 * time.Millisecond
	finalCommit = 10 * time.Second // for the last outcomes and the release of accounts
)

// Config is what a Dispatcher needs.
type Config struct {
	Pool         *pgxpool.Pool
	Master       *webhooks.Master
	AllowPrivate bool           // allow addresses that are not public
	Deny         []netip.Prefix // allow none of these
	InFlight     int            // requests of this process at a time; half as many idle connections are kept
	Outage       *store.Outage  // on Citus
	Log          *slog.Logger
}

// A Dispatcher delivers events. Any number of processes may run one.
//
// A process claims accounts whose deliveries are due. It owns an account until it releases it, because nothing is due
// or others wait, or until the lease ends, because the process has ended or cannot renew it. Each attempt has a
// goroutine. All else is done by tasks: rounds claim accounts, read due deliveries and release accounts.
//
// Only rounds add and remove accounts and endpoints, and load deliveries. Attempts start and end, and outcomes are
// written, at any time. No statement is executed while mu is locked.
type Dispatcher struct {
	cfg    Config
	id     store.ID // of this process, as the owner of accounts
	sender *sender

	// Tests have others.
	leaseTime, renewEvery, finalCommit time.Duration

	nextRound chan struct{} // filled when an endpoint needs deliveries that may be due
	commit    chan struct{} // filled when there are outcomes

	rounds sync.Mutex // held during a round

	mu       sync.Mutex // guards what follows
	turns    turns
	accounts map[store.ID]*account
	outcomes []outcome
	stopping bool
	stats    Stats
	attempts sync.WaitGroup
}

// New returns a dispatcher that does not run yet.
func New(cfg Config) *Dispatcher {
	cfg.Log = cfg.Log.With("component", "webhooks")
	dialer := &restrictedDialer{allowPrivate: cfg.AllowPrivate, deny: cfg.Deny, resolver: net.DefaultResolver, timeout: attemptTimeout}
	return &Dispatcher{
		cfg: cfg, id: store.NewID(), sender: newSender(dialer, cfg.InFlight/2),
		leaseTime: leaseTime, renewEvery: renewEvery, finalCommit: finalCommit,
		nextRound: make(chan struct{}, 1), commit: make(chan struct{}, 1),
		turns: turns{limits: newLimits(cfg.InFlight)}, accounts: make(map[store.ID]*account),
		stats: newStats(),
	}
}

// End ends deliveries, after the tasks have ended: it starts no attempt, waits for those that are in flight while it
// writes their outcomes, and releases its accounts.
func (d *Dispatcher) End() {
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		d.attempts.Wait()
		stop()
	}()
	task.NewRunner(d.cfg.Log, []task.Task{d.writeTask()}).Run(ctx)
	end, cancel := context.WithTimeout(context.Background(), d.finalCommit)
	defer cancel()
	d.releaseAll(end)
	d.sender.transport.CloseIdleConnections()
}

// releaseAll writes the last outcomes and releases all accounts. It tries again to release those that are locked, until
// ctx ends.
func (d *Dispatcher) releaseAll(ctx context.Context) {
	err := d.writeOutcomes(ctx)
	for err == nil && len(d.owned()) > 0 {
		if err = d.yield(ctx, d.owned()); err == nil && len(d.owned()) > 0 {
			sleep(ctx, pollEvery)
			err = d.readAccounts(ctx) // drops those that another process has claimed
		}
	}
	if err != nil {
		d.cfg.Log.Warn("cannot release accounts; other processes claim them when their leases end", "error", err)
	}
}

// sleep waits for a time or until ctx ends.
func sleep(ctx context.Context, t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// startAttempts starts attempts as the limits allow. d.mu is held.
func (d *Dispatcher) startAttempts() {
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
			r := d.sender.send(context.Background(), url, headers(next.event, began, next.body, keys...), next.body)
			d.endAttempt(next, url, unhealthy, r, began)
		})
	}
}

// endAttempt takes the result of an attempt and starts further attempts.
func (d *Dispatcher) endAttempt(ended *delivery, url string, wasUnhealthy bool, r result, began time.Time) {
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
	d.turns.enqueue(e.account)
	d.startAttempts()
	if !e.fetch.ended() && d.turns.needs(e) {
		notify(d.nextRound)
	}
}

// notify fills a channel unless it is full.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
