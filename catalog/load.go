package catalog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Catalog returns snapshots of the catalog in a database. It keeps the latest one.
type Catalog struct {
	pool    *pgxpool.Pool
	current atomic.Pointer[Snapshot]

	mu      sync.Mutex
	loading *load // in progress; nil if none is
}

// A load reads a snapshot for all callers that wait for it. Its result is set before done is closed.
type load struct {
	done     chan struct{}
	snapshot *Snapshot
	err      error
}

// loadTimeout bounds a load, which ends later than the context of a caller that stops waiting for it.
const loadTimeout = 10 * time.Second

// New returns the catalog of a database.
func New(pool *pgxpool.Pool) *Catalog { return &Catalog{pool: pool} }

// At returns the catalog of this revision or a later one. The caller must have read the revision from the database. At
// queries the database only if the snapshot that it keeps has another revision, earlier or, after a restore, later.
func (c *Catalog) At(ctx context.Context, revision int64) (*Snapshot, error) {
	if s := c.current.Load(); s != nil && s.Revision == revision {
		return s, nil
	}
	for {
		l, started := c.join(ctx, revision)
		select {
		case <-l.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// A load that was in progress may have read the database before the change that the caller has seen.
		if l.err != nil || started || l.snapshot.Revision >= revision {
			return l.snapshot, l.err
		}
	}
}

// join returns the load in progress, or starts one.
func (c *Catalog) join(ctx context.Context, revision int64) (l *load, started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loading != nil {
		return c.loading, false
	}
	l = &load{done: make(chan struct{})}
	if s := c.current.Load(); s != nil && s.Revision == revision { // stored since At looked
		l.snapshot = s
		close(l.done)
		return l, false
	}
	c.loading = l
	go c.run(context.WithoutCancel(ctx), l)
	return l, true
}

func (c *Catalog) run(ctx context.Context, l *load) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	l.snapshot, l.err = Read(ctx, c.pool)
	if l.err == nil {
		c.current.Store(l.snapshot)
	}
	c.mu.Lock()
	c.loading = nil
	c.mu.Unlock()
	close(l.done)
}

// Read reads the catalog except the questions, in one transaction so that all parts have one revision.
func Read(ctx context.Context, pool *pgxpool.Pool) (*Snapshot, error) {
	s := &Snapshot{pool: pool}
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(selectRevision).QueryRow(func(row pgx.Row) error { return row.Scan(&s.Revision) })
		batch.Queue(selectModels, Dependencies).Query(func(rows pgx.Rows) (err error) {
			s.Models, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Model])
			return err
		})
		batch.Queue(selectMethodologies).Query(func(rows pgx.Rows) (err error) {
			s.Methodologies, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Methodology])
			return err
		})
		return tx.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return nil, err
	}
	s.models = make(map[string]*Model, len(s.Models))
	for i := range s.Models {
		s.models[s.Models[i].ID] = &s.Models[i]
	}
	return s, nil
}
