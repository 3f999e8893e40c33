package catalog

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/batch"
)

// A Catalog returns snapshots of the catalog in a database. It keeps the latest one.
type Catalog struct {
	pool    *pgxpool.Pool
	current atomic.Pointer[Snapshot]         // nil before the first load
	loads   *batch.Batcher[int64, *Snapshot] // of callers that know these revisions
}

// loadTimeout bounds a load, which ends later than the context of a caller that stops waiting for it.
const loadTimeout = 10 * time.Second

// New returns the catalog of a database.
func New(pool *pgxpool.Pool) *Catalog {
	c := &Catalog{pool: pool}
	// Callers that need a snapshot at the same time share one load. Their number is not bounded.
	c.loads = batch.New(batch.Config[int64, *Snapshot]{
		Flush: c.load, Timeout: loadTimeout, MaxWaiting: math.MaxInt, MaxWeight: math.MaxInt,
	})
	return c
}

// At returns the catalog of this revision or a later one. The caller must have read the revision from the database. At
// queries the database only if the snapshot that it keeps has another revision, earlier or, after a restore, later.
func (c *Catalog) At(ctx context.Context, revision int64) (*Snapshot, error) {
	if s := c.current.Load(); s != nil && s.Revision == revision {
		return s, nil
	}
	return c.loads.Do(ctx, revision)
}

// load returns one snapshot to all callers. They read their revisions before it begins, so what it reads is not
// earlier.
func (c *Catalog) load(ctx context.Context, revisions []int64) ([]*Snapshot, error) {
	s := c.current.Load()
	// The snapshot may have been loaded while these callers waited.
	if s == nil || slices.ContainsFunc(revisions, func(r int64) bool { return r != s.Revision }) {
		var err error
		if s, err = Read(ctx, c.pool); err != nil {
			return nil, err
		}
		c.current.Store(s)
	}
	return slices.Repeat([]*Snapshot{s}, len(revisions)), nil
}

// Read reads the catalog except the questions, in one transaction so that all parts have one revision.
func Read(ctx context.Context, pool *pgxpool.Pool) (*Snapshot, error) {
	s := &Snapshot{pool: pool}
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var b pgx.Batch
		// The batch is one round trip, and all statements see one snapshot.
		b.Queue(selectRevision).QueryRow(func(row pgx.Row) error { return row.Scan(&s.Revision) })
		b.Queue(selectModels, Dependencies).Query(func(rows pgx.Rows) (err error) {
			s.Models, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Model])
			return err
		})
		b.Queue(selectMethodologies).Query(func(rows pgx.Rows) (err error) {
			s.Methodologies, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Methodology])
			return err
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return nil, err
	}
	// The map points into s.Models, which does not change from here on.
	s.models = make(map[string]*Model, len(s.Models))
	for i := range s.Models {
		s.models[s.Models[i].ID] = &s.Models[i]
	}
	return s, nil
}
