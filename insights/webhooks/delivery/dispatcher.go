// Package delivery sends events to endpoints, after [Standard Webhooks].
//
// It owns no table. It claims rows of webhook_queues and writes the outcomes of attempts to webhook_deliveries and
// webhook_endpoints. Package webhooks owns these tables and documents the order in which rows are locked. Command aiv
// dispatch runs a Dispatcher. Command aiv webhooks listen verifies deliveries with a Receiver.
//
// [Standard Webhooks]: https://www.standardwebhooks.com
package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
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
	leaseTime, finalCommit time.Duration

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
		leaseTime: leaseTime, finalCommit: finalCommit,
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

// Tasks returns the background work of a dispatcher. After the tasks have ended, End ends the deliveries.
//
// All tasks are prompt: events are to be delivered soon, a lease must be renewed in time, and outcomes wait for servers
// that are reachable again. An unresponsive server delays only the tasks that need it.
//
// Renewals may end first, because no attempt is started that the lease of its account does not cover (see
// turns.nextOf), and an outcome is written only if no other process has made the attempt.
func (d *Dispatcher) Tasks() []task.Task {
	return []task.Task{
		d.task("poll_webhooks", pollEvery, nil, func(ctx context.Context) error { return d.round(ctx, true) }),
		d.task("read_webhook_deliveries", time.Second, d.nextRound, func(ctx context.Context) error { return d.round(ctx, false) }),
		d.writeTask(),
		d.task("renew_webhook_leases", renewEvery, nil, d.renew),
	}
}

// writeTask returns the task that writes outcomes: at once, or at an interval where they could not be written before.
func (d *Dispatcher) writeTask() task.Task {
	return d.task("write_webhook_outcomes", time.Second, d.commit, d.writeOutcomes)
}

// task returns a task whose run is repeated at once if it has found that a server of the cluster is unreachable.
func (d *Dispatcher) task(name string, every time.Duration, wake <-chan struct{}, run func(context.Context) error) task.Task {
	retry := func(ctx context.Context) error {
		return d.cfg.Outage.Retry(ctx, func() error { return run(ctx) })
	}
	return task.Task{Name: name, Every: every, Prompt: true, Wake: wake, Timeout: d.leaseTime, Run: retry}
}

// Stats counts what a Dispatcher has done since it was made.
type Stats struct {
	Attempts    map[string]uint64 // by outcome: "delivered" or an Error constant of package webhooks; none is left out
	AttemptTime time.Duration     // of all attempts
	InFlight    int               // requests at present
}

func newStats() Stats {
	return Stats{Attempts: map[string]uint64{"delivered": 0, webhooks.ErrorStatus: 0, webhooks.ErrorTimeout: 0, webhooks.ErrorConnection: 0,
		webhooks.ErrorTLS: 0, webhooks.ErrorRedirect: 0, webhooks.ErrorBlocked: 0}}
}

func (s *Stats) count(r result, took time.Duration) {
	s.AttemptTime += took
	s.Attempts[cmp.Or(r.err, "delivered")]++
}

// Stats returns the current counts.
func (d *Dispatcher) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Attempts, s.InFlight = maps.Clone(s.Attempts), d.turns.inFlight
	return s
}
