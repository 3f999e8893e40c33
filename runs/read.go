package runs

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/batch"
)

// A Filter selects runs of an account. An empty field does not restrict.
type Filter struct {
	IDs             []store.ID // nil: any; empty: none
	Statuses        []string
	MeasurementType string
	Country         string
	ModelID         string
	From, To        *time.Time // of creation; From is inclusive, To exclusive
}

// List returns a page of an account's runs, newest first, and one run more if there is one. Ids are looked up one by
// one; otherwise the page is read through the index of a filter that matches few runs or, if there is none, of the
// first filter in this order: model, country, status, measurement type.
func List(ctx context.Context, db store.Querier, account store.ID, f Filter, page store.Page) ([]Run, error) {
	s, row := f.query(account, page), newDecoder(account).row
	if !f.selectsByModel() {
		return store.ReadPageFunc(ctx, db, s, row)
	}
	// The runs of a model are read from measurement_run_models, unless another filter matches only a few runs.
	if rare, err := s.Rare(ctx, db); err != nil {
		return nil, err
	} else if rare {
		s.Where("? = ANY (r.model_ids)", f.ModelID)
		return store.ReadPageFunc(ctx, db, s, row)
	}
	// measurement_run_models repeats the sort key, so a page is read in its order.
	m := store.KeysetQuery{Select: selectRunsByModel, Order: []string{"m.created_at", "m.run_id"}, Named: []string{"created_at", "id"},
		From: f.From, To: f.To, Page: page, First: true}
	m.Where("m.account_id = ?", account)
	m.Filter("m.model_id", f.ModelID)
	f.restrict(m.Filter)
	return store.ReadPageFunc(ctx, db, &m, row)
}

// QueueList adds the statement of List to a batch; runs is set when the result is read. It adds nothing, and reports
// false, if List needs more than one statement for the page.
func QueueList(b *pgx.Batch, account store.ID, f Filter, page store.Page, runs *[]Run) bool {
	s := f.query(account, page)
	if f.selectsByModel() || !s.IsSingle() {
		return false
	}
	store.QueuePage(b, s, newDecoder(account).row, runs)
	return true
}

// selectsByModel reports whether List must find the runs of a model.
func (f *Filter) selectsByModel() bool { return f.ModelID != "" && f.IDs == nil }

// query returns the query of a page, without the model if the filter selects by it.
func (f *Filter) query(account store.ID, page store.Page) *store.KeysetQuery {
	s := store.KeysetQuery{Select: selectRuns, Order: []string{"r.created_at", "r.id"}, From: f.From, To: f.To, Page: page}
	s.Where("r.account_id = ?", account)
	if f.IDs == nil {
		f.restrict(s.Filter)
		return &s
	}
	s.Select = selectRunsByID // refers to $1 and $2
	s.Where("r.id = ANY (?)", f.IDs)
	if f.ModelID != "" {
		s.Where("? = ANY (r.model_ids)", f.ModelID)
	}
	// The ids find the rows, so no other filter may choose the index.
	f.restrict(s.Among)
	return &s
}

// restrict adds the filters by columns of measurement_runs.
func (f *Filter) restrict(add func(column string, values ...string)) {
	statuses := f.Statuses
	if !slices.ContainsFunc(Statuses, func(status string) bool { return !slices.Contains(statuses, status) }) {
		statuses = nil // all of them: no restriction
	}
	add("r.country", f.Country)
	add("r.status", statuses...)
	add("r.measurement_type", f.MeasurementType)
}

// Get returns one run of the account, or ErrNotFound. Callers must not change the run: concurrent reads share one round
// trip and its results.
func (r *Runs) Get(ctx context.Context, account, id store.ID) (*Run, error) {
	return orNotFound(r.reads.Do(ctx, runKey{account, id}))
}

// orNotFound returns what readBatch found as Get returns it.
func orNotFound(run *Run, err error) (*Run, error) {
	if run == nil && err == nil {
		return nil, ErrNotFound
	}
	return run, err
}

// A Reading is a Get that has begun. Its caller must call either Get or Abandon, once.
type Reading struct{ started batch.Started[runKey, *Run] }

// StartGet begins to read a run for a caller that may not need it. ok is false if too many reads wait.
func (r *Runs) StartGet(ctx context.Context, account, id store.ID) (reading Reading, ok bool) {
	reading.started, ok = r.reads.TryStart(ctx, runKey{account, id})
	return reading, ok
}

// Get waits for what [Runs.Get] returns.
func (r Reading) Get(ctx context.Context) (*Run, error) { return orNotFound(r.started.Wait(ctx)) }

// Abandon gives up the run, which is not read if that has not begun.
func (r Reading) Abandon() { r.started.Abandon() }

// A runKey identifies a run: ids of runs are looked up together with their account.
type runKey struct{ account, id store.ID }

// readBatch reads each run once. A run that the account does not have is nil.
func (r *Runs) readBatch(ctx context.Context, keys []runKey) ([]*Run, error) {
	// Concurrent requests may ask for the same run.
	found := make(map[runKey]*Run, len(keys))
	accounts, ids := make([]store.ID, 0, len(keys)), make([]store.ID, 0, len(keys))
	for _, k := range keys {
		if _, ok := found[k]; !ok {
			// nil until it is read, and if there is no such run.
			found[k] = nil
			accounts, ids = append(accounts, k.account), append(ids, k.id)
		}
	}
	if len(ids) == 1 {
		run, err := get(ctx, r.cfg.Reads, accounts[0], ids[0])
		// All callers share the run.
		return slices.Repeat([]*Run{run}, len(keys)), err
	}
	all, err := GetAll(ctx, r.cfg.Reads, accounts, ids)
	if err != nil {
		return nil, err
	}
	for i := range all {
		found[runKey{all[i].AccountID, all[i].ID}] = &all[i]
	}
	out := make([]*Run, len(keys))
	for i, k := range keys {
		out[i] = found[k]
	}
	return out, nil
}

// get returns one run of the account, or nil.
func get(ctx context.Context, db store.Querier, account, id store.ID) (*Run, error) {
	run, err := store.CollectOne(ctx, db, newDecoder(account).row, selectRun, account, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &run, err
}

// GetAll returns the runs with the given keys, in the order of the keys. Keys without a run are left out.
func GetAll(ctx context.Context, db store.Querier, accounts, ids []store.ID) ([]Run, error) {
	rows, err := db.Query(ctx, selectRunsByKey, store.OnCitus(citusRunsByKey), accounts, ids)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows(make([]Run, 0, len(ids)), rows, newDecoder(store.ID{}).row)
}

// Recent returns up to limit of the newest runs for an operator. A nil account means all accounts, nil statuses all.
func Recent(ctx context.Context, pool *pgxpool.Pool, account *store.ID, statuses []string, limit int) (found []Run, err error) {
	err = store.WithoutTimeouts(ctx, pool, func(tx pgx.Tx) (err error) {
		found, err = store.Collect(ctx, tx, pgx.RowToStructByPos[Run], selectRecent, store.OnCitus(citusRecent), account, statuses, limit)
		return err
	})
	return found, err
}

// Find returns a run of any account for an operator. It returns ErrNotFound.
func Find(ctx context.Context, pool *pgxpool.Pool, id store.ID) (*Run, error) {
	run, err := store.CollectOne(ctx, pool, pgx.RowToAddrOfStructByPos[Run], findRun, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNotFound
	}
	return run, err
}
