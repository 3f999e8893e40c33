package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"aiv/store"
)

// claim claims accounts with due deliveries. If the process already owns the maximum and others are due, it marks the
// accounts owned longest as yielding, so that all accounts take turns.
func (d *Dispatcher) claim(ctx context.Context) error {
	d.mu.Lock()
	limit := min(maxClaim, d.turns.limits.accounts-len(d.reachable()))
	if d.turns.inFlight >= d.turns.limits.inFlight {
		limit = 0
	}
	d.mu.Unlock()
	candidates, err := readIDs(ctx, d.cfg.Pool, dueAccounts, d.cfg.Outage.Reachable(citusDueAccounts), max(limit, 1))
	if err != nil || len(candidates) == 0 {
		return err
	}
	if limit <= 0 {
		d.markYielding()
		return nil
	}
	began := time.Now()
	claimed, err := d.updateQueues(ctx, claimAccounts, candidates, d.id, d.leaseTime.Seconds())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range claimed {
		if a := d.accounts[id]; a != nil { // its lease had ended
			a.leaseEnd = began.Add(d.leaseTime)
			continue
		}
		d.accounts[id] = &account{id: id, claimedAt: began, leaseEnd: began.Add(d.leaseTime)}
	}
	return nil
}

// markYielding marks accounts that were claimed more than yieldAfter ago, if the process owns the maximum.
func (d *Dispatcher) markYielding() {
	d.mu.Lock()
	defer d.mu.Unlock()
	accounts := d.reachable()
	if len(accounts) < d.turns.limits.accounts {
		return
	}
	marked := 0
	for _, a := range accounts {
		if time.Since(a.claimedAt) > yieldAfter && marked < maxClaim {
			a.yielding = true
			for _, e := range a.endpoints {
				d.turns.dropReady(e)
			}
			marked++
		}
	}
}

// owned returns the accounts of this process on reachable servers.
func (d *Dispatcher) owned() []store.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	accounts := d.reachable()
	ids := make([]store.ID, len(accounts))
	for i, a := range accounts {
		ids[i] = a.id
	}
	return ids
}

// reachable returns the accounts of this process, in random order, without those on unreachable servers of a cluster.
// These keep their state until the server is reachable again. d.mu is held.
func (d *Dispatcher) reachable() []*account {
	accounts := make([]*account, 0, len(d.accounts))
	for id, a := range d.accounts {
		if !d.cfg.Outage.Away(id) {
			accounts = append(accounts, a)
		}
	}
	return accounts
}

// renew extends the leases of the accounts that the process still owns, except those that are locked. readAccounts
// drops the accounts that it no longer owns.
func (d *Dispatcher) renew(ctx context.Context) error {
	owned := d.owned()
	if len(owned) == 0 {
		return nil
	}
	began := time.Now()
	kept, err := d.updateQueues(ctx, renewAccounts, owned, d.id, d.leaseTime.Seconds())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range kept {
		if a := d.accounts[id]; a != nil {
			a.leaseEnd = began.Add(d.leaseTime)
		}
	}
	return nil
}

// drop removes an account that the process no longer owns. Its attempts that are in flight are not canceled, and their
// outcomes are written. d.mu is held.
func (d *Dispatcher) drop(a *account) {
	for _, e := range a.endpoints {
		d.turns.dropReady(e)
	}
	delete(d.accounts, a.id)
}

// release releases the accounts that have nothing due, and yielding ones. The next round tries again to release those
// that are locked.
func (d *Dispatcher) release(ctx context.Context) error {
	idle, yielding := d.releasable()
	if err := d.releaseIdle(ctx, idle); err != nil {
		return err
	}
	return d.yield(ctx, yielding)
}

// yield releases accounts that may have due deliveries, except those that are locked.
func (d *Dispatcher) yield(ctx context.Context, ids []store.ID) error {
	if len(ids) == 0 {
		return nil
	}
	yielded, err := d.updateQueues(ctx, yieldAccounts, ids, d.id)
	if err != nil {
		return err
	}
	d.dropAll(yielded)
	return nil
}

// updateQueues executes a statement that changes the queues of accounts, and returns the accounts whose queues it has
// changed. It leaves out queues that another transaction has locked; on Citus, which cannot lock rows of several
// accounts by SELECT, it waits for them.
func (d *Dispatcher) updateQueues(ctx context.Context, sql string, accounts []store.ID, args ...any) ([]store.ID, error) {
	args = append([]any{store.OfAccounts("q", sql) + returningAccount, accounts}, args...)
	return readIDs(ctx, d.cfg.Pool, sql+ofUnlocked, args...)
}

// releaseIdle releases accounts in which nothing is due before the first pending delivery that was read.
func (d *Dispatcher) releaseIdle(ctx context.Context, idle []*account) error {
	if len(idle) == 0 {
		return nil
	}
	ids, versions, wakes := make([]store.ID, len(idle)), make([]int64, len(idle)), make([]pgtype.Timestamptz, len(idle))
	d.mu.Lock()
	for i, a := range idle {
		ids[i], versions[i], wakes[i] = a.id, a.version, a.wakeAt()
	}
	d.mu.Unlock()
	released, err := d.updateQueues(ctx, releaseAccounts, ids, versions, wakes, d.id)
	if err != nil {
		return err
	}
	d.dropAll(released)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range idle {
		a.readAt = time.Time{} // an account that is not released has a new version or is locked
	}
	return nil
}

// releasable returns the accounts in which nothing was due when all pending deliveries were read, and the yielding
// accounts. No delivery of them is loaded. The former are in the order of their ids, in which Citus locks them.
func (d *Dispatcher) releasable() (idle []*account, yielding []store.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.reachable() {
		switch {
		case a.loaded > 0 || a.readAt.IsZero():
		case a.yielding:
			yielding = append(yielding, a.id)
		case a.allRead():
			idle = append(idle, a)
		}
	}
	slices.SortFunc(idle, func(a, b *account) int { return a.id.Compare(b.id) })
	return idle, yielding
}

// dropAll drops accounts.
func (d *Dispatcher) dropAll(ids []store.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		d.drop(d.accounts[id])
	}
}

// allRead reports whether nothing was due when the pending deliveries of each endpoint were last read. Deliveries of a
// disabled endpoint are not read: the next update of the account removes it.
func (a *account) allRead() bool {
	return !slices.ContainsFunc(a.endpoints, func(e *endpoint) bool { return e.fetch.state != noneDue })
}

// wakeAt returns when the first delivery of the account is due, if allRead.
func (a *account) wakeAt() pgtype.Timestamptz {
	first := pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	for _, e := range a.endpoints {
		if next := e.fetch.next; next != nil && (first.InfinityModifier == pgtype.Infinity || next.Before(first.Time)) {
			first = pgtype.Timestamptz{Time: *next, Valid: true}
		}
	}
	return first
}
