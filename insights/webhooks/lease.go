package webhooks

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"aiv/store"
)

// claim claims accounts with due deliveries. If the process owns as many as it may, it gives back those that it has owned
// for long, so that all accounts take turns.
func (d *Dispatcher) claim(ctx context.Context) error {
	d.mu.Lock()
	most := min(maxClaim, d.cfg.Limits.Accounts-len(d.reachable()))
	if d.turns.inFlight >= d.cfg.Limits.InFlight {
		most = 0
	}
	d.mu.Unlock()
	candidates, err := column[store.ID](ctx, d.cfg.Pool, dueAccounts, d.outage.Reachable(citusDueAccounts), max(most, 1))
	if err != nil || len(candidates) == 0 {
		return err
	}
	if most <= 0 {
		d.makeRoom()
		return nil
	}
	began := time.Now()
	claimed, err := column[store.ID](ctx, d.cfg.Pool, claimAccounts, store.OnCitus(citusClaimAccounts), candidates, d.id, leaseTime.Seconds())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range claimed {
		if a := d.accounts[id]; a != nil { // its lease had ended
			a.leaseEnd = began.Add(leaseTime)
			continue
		}
		d.accounts[id] = &account{id: id, claimedAt: began, leaseEnd: began.Add(leaseTime)}
	}
	return nil
}

// makeRoom marks accounts to be given back though they may have due deliveries.
func (d *Dispatcher) makeRoom() {
	d.mu.Lock()
	defer d.mu.Unlock()
	accounts := d.reachable()
	if len(accounts) < d.cfg.Limits.Accounts {
		return
	}
	marked := 0
	for _, a := range accounts {
		if !a.yielding && time.Since(a.claimedAt) > yieldAfter && marked < maxClaim {
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

// reachable returns the accounts of this process, in random order, without those on unreachable servers of a cluster. These keep what is
// known of them until the server is back. d.mu is held.
func (d *Dispatcher) reachable() []*account {
	accounts := make([]*account, 0, len(d.accounts))
	for id, a := range d.accounts {
		if !d.outage.Away(id) {
			accounts = append(accounts, a)
		}
	}
	return accounts
}

// runRenew extends the leases of the accounts.
func (d *Dispatcher) runRenew(ctx context.Context) {
	ticker := time.NewTicker(d.renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := d.outage.Retry(ctx, func() error { return d.renew(ctx) }); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("webhooks: cannot renew leases; retrying", "error", err)
		}
	}
}

// renew extends the leases of the accounts that the process still owns. readAccounts drops the others.
func (d *Dispatcher) renew(ctx context.Context) error {
	owned := d.owned()
	if len(owned) == 0 {
		return nil
	}
	began := time.Now()
	kept, err := column[store.ID](ctx, d.cfg.Pool, renewAccounts, owned, d.id, leaseTime.Seconds())
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range kept {
		if a := d.accounts[id]; a != nil {
			a.leaseEnd = began.Add(leaseTime)
		}
	}
	return nil
}

// drop forgets an account that the process no longer owns. d.mu is held.
func (d *Dispatcher) drop(a *account) {
	a.lost = true
	for _, e := range a.endpoints {
		d.turns.dropReady(e)
	}
	delete(d.accounts, a.id)
}

// release gives back accounts that have nothing due, and yielding ones.
func (d *Dispatcher) release(ctx context.Context) error {
	idle, yielding := d.idle()
	if len(idle) > 0 {
		ids, versions, wakes := make([]store.ID, len(idle)), make([]int64, len(idle)), make([]pgtype.Timestamptz, len(idle))
		for i, a := range idle {
			ids[i], versions[i], wakes[i] = a.id, a.version, a.wakeAt()
		}
		released, err := column[store.ID](ctx, d.cfg.Pool, releaseAccounts+returningAccount, citusReleaseAccounts, ids, versions, wakes, d.id)
		if err != nil {
			return err
		}
		d.mu.Lock()
		for _, a := range idle {
			a.readAt = time.Now().Add(-2 * rereadAccount) // where it stays, its version has changed
		}
		for _, id := range released {
			if a := d.accounts[id]; a != nil {
				d.drop(a)
			}
		}
		d.mu.Unlock()
	}
	if len(yielding) > 0 {
		if _, err := d.cfg.Pool.Exec(ctx, yieldAccounts, yielding, d.id); err != nil {
			return err
		}
		d.mu.Lock()
		for _, id := range yielding {
			if a := d.accounts[id]; a != nil {
				d.drop(a)
			}
		}
		d.mu.Unlock()
	}
	return nil
}

// idle returns the accounts in which nothing was due when all pending deliveries were read, and the yielding accounts whose
// outcomes are all written. The former are in the order of their ids, in which all statements lock them.
func (d *Dispatcher) idle() (idle []*account, yielding []store.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.reachable() {
		switch {
		case a.known > 0 || a.readAt.IsZero():
		case a.yielding:
			yielding = append(yielding, a.id)
		case a.allRead():
			idle = append(idle, a)
		}
	}
	slices.SortFunc(idle, func(a, b *account) int { return a.id.Compare(b.id) })
	return idle, yielding
}

// allRead reports whether the latest read of each endpoint found all its pending deliveries, none due.
func (a *account) allRead() bool {
	for _, e := range a.endpoints {
		if !e.disabled && e.fetch.state != noneDue {
			return false
		}
	}
	return true
}

// wakeAt returns when the first delivery of the account is due.
func (a *account) wakeAt() pgtype.Timestamptz {
	first := pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	for _, e := range a.endpoints {
		if next := e.fetch.next; !e.disabled && next != nil && (first.InfinityModifier == pgtype.Infinity || next.Before(first.Time)) {
			first = pgtype.Timestamptz{Time: *next, Valid: true}
		}
	}
	return first
}
