package runs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"aiv/idempotency"
	"aiv/store"
)

// pending is a run that is waiting to be written.
type pending struct {
	request  *CreateRequest
	run      *Run
	hash     idempotency.Hash // of the request
	response []byte           // as it is stored with the key
	arrived  time.Time        // when the request began to wait
}

// key is what concurrent duplicates have in common.
func (p *pending) key() any {
	return struct {
		idempotency.Scope
		key string
	}{p.request.scope(), p.request.Key}
}

// maxBatchJobs bounds the jobs of the runs that share a statement, so that small runs do not wait for large ones. A run
// with more jobs is written by a batcher for large runs.
const maxBatchJobs = 5000

// A writeResult is the outcome of one run of a batch. At most one of the three is set.
type writeResult struct {
	written bool        // false: its key is taken or in use, or it does not fit
	inUse   bool        // another transaction is claiming its key
	quota   *QuotaError // why it does not fit
}

// writeSmall writes a batch of runs in one statement and one round trip.
func (r *Runs) writeSmall(ctx context.Context, batch []*pending, wait lockWait) ([]writeResult, error) {
	results, err := r.insert(ctx, batch, wait)
	if store.IsLockTimeout(err) && !waitedForKey(err) && !waitedForMonth(err) {
		// A lock on a table delays every run, so the batch waits for it as a whole. A wait behind another waiter for a
		// month returns the same error and is treated in the same way. The failed statement has written nothing.
		results, err = r.insert(ctx, batch, lockWait{})
	}
	return results, err
}

// insert bounds the waits for locks in the implicit transaction of its round trip. On Citus it needs a transaction of
// several round trips instead.
func (r *Runs) insert(ctx context.Context, batch []*pending, wait lockWait) ([]writeResult, error) {
	conn, err := r.cfg.Pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	if store.IsCitus(conn.Conn()) {
		return r.writeTx(ctx, conn, batch, wait)
	}
	var b pgx.Batch
	// The setting ends with the implicit transaction.
	if sql, arg := wait.setting(); sql != "" {
		b.Queue(sql, arg)
	}
	var results []writeResult
	b.Queue(r.insertRuns, newBatchColumns(batch).args()...).Query(func(rows pgx.Rows) (err error) {
		results, err = r.markWritten(batch, rows)
		return err
	})
	err = conn.SendBatch(ctx, &b).Close() // sets results
	return results, err
}

// writeLarge writes runs whose jobs are copied.
func (r *Runs) writeLarge(ctx context.Context, batch []*pending, wait lockWait) ([]writeResult, error) {
	return r.writeTx(ctx, r.cfg.Pool, batch, wait)
}

// writeTx writes runs in a transaction of several round trips.
func (r *Runs) writeTx(ctx context.Context, db interface {
	Begin(context.Context) (pgx.Tx, error)
}, batch []*pending, wait lockWait) (results []writeResult, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if sql, arg := wait.setting(); sql != "" {
			if _, err := tx.Exec(ctx, sql, arg); err != nil {
				return err
			}
		}
		results, err = r.insertTx(ctx, tx, batch)
		return err
	})
	return results, err
}

// insertTx writes runs of any size. Jobs of a large batch are copied after the rest: PostgreSQL writes copied rows a
// page at a time and inserted rows one by one.
func (r *Runs) insertTx(ctx context.Context, tx pgx.Tx, batch []*pending) ([]writeResult, error) {
	if store.IsCitus(tx.Conn()) {
		return r.insertOnCitus(ctx, tx, batch)
	}
	// Runs whose keys turn out to be taken are counted, too.
	jobs := 0
	for _, p := range batch {
		jobs += p.run.TotalJobs
	}
	sql := r.insertRuns
	if jobs > maxBatchJobs {
		sql = r.insertLargeRuns
	}
	rows, err := tx.Query(ctx, sql, newBatchColumns(batch).args()...)
	if err != nil {
		return nil, err
	}
	results, err := r.markWritten(batch, rows)
	if err != nil || jobs <= maxBatchJobs {
		return results, err
	}
	return results, r.copyAndCountJobs(ctx, tx, batch, results)
}

// copyAndCountJobs copies the jobs of the runs written and counts them in their accounts' months.
func (r *Runs) copyAndCountJobs(ctx context.Context, tx pgx.Tx, batch []*pending, results []writeResult) error {
	// The keys are claimed. After a short lock timeout, a retry would copy the jobs again, so the wait for a month is
	// bounded only by the session's lock_timeout.
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout TO DEFAULT"); err != nil {
		return err
	}
	var accounts []store.ID
	var jobs []int32
	for i, p := range batch {
		// The key of the run is taken, so there is no row to which jobs could refer.
		if !results[i].written {
			continue
		}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"measurement_jobs"}, []string{"account_id", "run_id", "ordinal"}, p.jobs()); err != nil {
			return err
		}
		accounts, jobs = append(accounts, p.run.AccountID), append(jobs, int32(p.run.TotalJobs))
	}
	rows, err := tx.Query(ctx, countOrdered, accounts, jobs)
	if err != nil {
		return err
	}
	return r.unfinished.read(rows)
}

// jobs are the rows of a run's jobs.
func (p *pending) jobs() pgx.CopyFromSource {
	ordinal := int32(0)
	return pgx.CopyFromFunc(func() ([]any, error) {
		// A nil row ends the copy.
		if ordinal++; int(ordinal) > p.run.TotalJobs {
			return nil, nil
		}
		return []any{p.run.AccountID, p.run.ID, ordinal}, nil
	})
}

// markWritten reads the ids of the runs written, with the unfinished jobs of their accounts in the current month.
func (r *Runs) markWritten(batch []*pending, rows pgx.Rows) ([]writeResult, error) {
	var id store.ID
	var unfinished *int64
	found := make(map[store.ID]*int64, len(batch))
	_, err := pgx.ForEachRow(rows, []any{&id, &unfinished}, func() error {
		found[id] = unfinished
		return nil
	})
	if err != nil {
		return nil, err
	}
	results := make([]writeResult, len(batch))
	for i, p := range batch {
		// A run without a row has a key that was taken. n is nil for large runs, whose months are counted later.
		n, ok := found[p.run.ID]
		results[i].written = ok
		if n != nil {
			r.unfinished.set(p.run.AccountID, *n)
		}
	}
	return results, nil
}

// batchColumns are the columns of the runs of a batch, in the order of the parameters of insertRuns.
type batchColumns struct {
	accounts                                []store.ID
	methods, routes, keys                   []string
	hashes                                  [][]byte
	ids                                     []store.ID
	responses                               [][]byte
	credentials                             []store.ID
	types, methodologies, models, questions []string
	repetitions                             []int16
	locales, countries, languages           []string
	jobs                                    []int32
}

// newBatchColumns returns the columns with one element for each run of the batch, in its order.
func newBatchColumns(batch []*pending) *batchColumns {
	c := new(batchColumns)
	for _, p := range batch {
		c.accounts = append(c.accounts, p.run.AccountID)
		c.methods = append(c.methods, p.request.Operation.Method)
		c.routes = append(c.routes, p.request.Operation.Route)
		c.keys = append(c.keys, p.request.Key)
		c.hashes = append(c.hashes, p.hash[:])
		c.ids = append(c.ids, p.run.ID)
		c.responses = append(c.responses, p.response)
		c.credentials = append(c.credentials, p.request.Proposal.Orderer.CredentialID)
		c.types = append(c.types, p.run.MeasurementType)
		c.methodologies = append(c.methodologies, p.run.MethodologyVersion)
		c.models = append(c.models, arrayLiteral(p.run.ModelIDs))
		c.questions = append(c.questions, arrayLiteral(p.run.QuestionIDs))
		// The methodology bounds the repetitions to a smallint.
		c.repetitions = append(c.repetitions, int16(p.run.Repetitions))
		c.locales = append(c.locales, p.run.Locale)
		c.countries = append(c.countries, p.run.Country)
		c.languages = append(c.languages, p.run.Language)
		c.jobs = append(c.jobs, int32(p.run.TotalJobs))
	}
	return c
}

// args returns the columns as the parameters of insertRuns.
func (c *batchColumns) args() []any {
	return []any{c.accounts, c.methods, c.routes, c.keys, c.hashes, c.ids, c.responses, c.credentials, c.types, c.methodologies, c.models,
		c.questions, c.repetitions, c.locales, c.countries, c.languages, c.jobs}
}

// arrayLiteral returns PostgreSQL's text form of a text[], each element quoted.
func arrayLiteral(elements []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, e := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		arrayEscapes.WriteString(&b, e)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

var arrayEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// causedByOneRun reports whether err rolled back the batch and may be due to a single run. A timeout of a lock that is
// not on a key or a month concerns all runs. If the server was lost, the runs may have been written; the retry then
// finds their keys taken.
func causedByOneRun(err error) bool {
	return store.MayConcernOneRow(err) && (!store.IsLockTimeout(err) || waitedForKey(err) || waitedForMonth(err))
}

// waitedForKey reports whether err is the end of a wait for another transaction that is claiming the same key.
func waitedForKey(err error) bool { return waitedForRow(err, "idempotency_records") }

// waitedForMonth reports whether err is the end of a wait for another transaction that has locked an account's month.
func waitedForMonth(err error) bool { return waitedForRow(err, "account_months") }

// waitedForRow reports whether err is a lock timeout for a row of a table. Only the context of the error names the
// table.
func waitedForRow(err error, table string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && store.IsLockTimeout(err) && strings.Contains(e.Where, table)
}
