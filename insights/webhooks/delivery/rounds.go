package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

const (
	minFetch = 4 // due deliveries of an endpoint in one read; doubled while the endpoint keeps up
	maxFetch = 256

	maxFetchAll = 1024 // of all endpoints in one round
	readStep    = 64   // events that one statement reads
	maxClaim    = 128  // accounts in one round

	rereadAccount = time.Second     // maximum age of what was read of an account's endpoints
	restartFetch  = 5 * time.Second // a delivery that was committed late may lie before the cursor
)

// round reads endpoints and due deliveries, starts attempts, and releases accounts with nothing due. A poll also claims
// accounts. Rounds take turns.
func (d *Dispatcher) round(ctx context.Context, poll bool) error {
	d.rounds.Lock()
	defer d.rounds.Unlock()
	if poll {
		// A claim is not canceled by ctx: the accounts would stay owned, unknown to the process, until their leases
		// end. After the time of a lease, a server that does not respond is given up.
		claiming, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.leaseTime)
		defer cancel()
		if err := d.claim(claiming); err != nil {
			return err
		}
	}
	if err := d.readAccounts(ctx); err != nil {
		return err
	}
	reads := d.beginReads(poll)
	due, err := d.readDue(ctx, reads)
	if err != nil {
		return err
	}
	if err := d.readEvents(ctx, due); err != nil {
		return err
	}
	if err := d.readChanges(ctx, due); err != nil {
		return err
	}
	d.mu.Lock()
	d.endReads(reads, due)
	d.startAttempts()
	d.mu.Unlock()
	return d.release(ctx)
}

// readIDs reads one column of ids.
func readIDs(ctx context.Context, db store.Querier, sql string, args ...any) ([]store.ID, error) {
	return store.Collect(ctx, db, pgx.RowTo[store.ID], sql, args...)
}
