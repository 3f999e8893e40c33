package jobs

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A claimState contains what a transaction read under the lock of claims.
type claimState struct {
	now       time.Time
	firstTurn int64      // the transaction numbers turns from here on
	revoked   []store.ID // workers
	supply    *supply    // what is left of it changes in allot
	idle      turnKeys   // of accounts without jobs to hand out
	changed   bool       // the transaction admitted jobs or deleted turns
}

// An accountAt is an account at a provider.
type accountAt struct {
	account  store.ID
	provider string
}

// turnKeys are distinct keys of rows of job_turns.
type turnKeys struct {
	accounts  []store.ID
	providers []string
	seen      map[accountAt]bool
}

// add adds a key, once.
func (k *turnKeys) add(account store.ID, provider string) {
	at := accountAt{account, provider}
	if k.seen[at] {
		return
	}
	if k.seen == nil {
		k.seen = make(map[accountAt]bool)
	}
	k.seen[at] = true
	k.accounts, k.providers = append(k.accounts, account), append(k.providers, provider)
}

// readClaimState begins a transaction that hands out jobs. It admits arrived runs and due retries before it reads the
// jobs that can be handed out.
//
// An account whose last jobs were canceled keeps its turn until the turn is read. There it may displace an account that
// has jobs, so the turn is deleted and the supply is read again, for twice as many accounts each time.
func (d *Dispatcher) readClaimState(ctx context.Context, conn *pgx.Conn, demands []demand, workers []store.ID) (*claimState, error) {
	providers, want := wanted(demands)
	state := &claimState{}
	// Each row of the supply reports whether runs or retries wait to be admitted.
	backlog := false
	read := func(b *pgx.Batch) error {
		s := newSupplyBuilder()
		collect := func(rows pgx.Rows) error {
			// All rows have the same time and the same two reports of a backlog. There is at least one row.
			var r supplyRow
			_, err := pgx.ForEachRow(rows, r.columns(), func() error {
				s.add(&r)
				return nil
			})
			state.now, backlog = r.now, backlog || r.arrivals || r.due
			return err
		}
		b.Queue(readSupply, d.cfg.Outage.Reachable(citusSupply), providers, want).Query(collect)
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		state.supply, state.idle = s.done()
		return nil
	}
	var b pgx.Batch
	batchBegin(&b, &state.firstTurn)
	b.Queue(readRevoked, workers).QueryRow(func(row pgx.Row) error { return row.Scan(&state.revoked) })
	if err := read(&b); err != nil {
		return nil, err
	}
	// The backlog is admitted once. What arrives later is admitted by the next transaction.
	if backlog {
		state.changed = true
		var b pgx.Batch
		if err := d.admitArrivalsAndRetries(ctx, conn, &b, state.firstTurn); err != nil {
			return nil, err
		}
		if err := read(&b); err != nil {
			return nil, err
		}
	}
	for len(state.idle.accounts) > 0 {
		state.changed = true
		want = min(2*want, maxBatchClaims)
		var b pgx.Batch
		endTurns.queue(&b, conn, state.idle.accounts, state.idle.providers)
		if err := read(&b); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// batchBegin begins a transaction that takes the lock of claims, and sets the first turn that it may give.
func batchBegin(b *pgx.Batch, turn *int64) {
	b.Queue("BEGIN")
	b.Queue(lockClaims).QueryRow(func(row pgx.Row) error {
		var number int64
		err := row.Scan(nil, nil, &number)
		*turn = number << 20 // leaves room for the turns that the transaction gives
		return err
	})
}

// admitArrivalsAndRetries admits arrived runs and due retries: on Citus before it returns, otherwise by the batch.
func (d *Dispatcher) admitArrivalsAndRetries(ctx context.Context, conn *pgx.Conn, b *pgx.Batch, turn int64) error {
	if store.IsCitus(conn) {
		return d.admitOnCitus(ctx, conn, turn)
	}
	b.Queue(admitArrivals, turn)
	b.Queue(admitDue, turn)
	return nil
}

// wanted returns the providers that any claim accepts (nil: all), and the number of jobs that the claims request.
func wanted(demands []demand) (providers []string, jobs int) {
	providers = []string{}
	for _, d := range demands {
		jobs += d.limit
		// One claim for all providers is enough to read all of them.
		if d.providers == nil || providers == nil {
			providers = nil
			continue
		}
		providers = append(providers, d.providers...)
	}
	return providers, jobs
}
