package visibility

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/brands"
	"aiv/insights/brands/match"
	"aiv/store"
)

// Config contains what a Counter depends on.
type Config struct {
	Pool *pgxpool.Pool // for Recount and Merge

	// Questions returns the texts of questions of an account, in the order of their ids.
	Questions func(ctx context.Context, db store.Querier, account store.ID, ids []string) ([]string, error)
	// Answers calls each with the stored answers of jobs of a run, some at a time. It leaves out jobs without a stored answer.
	Answers func(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32, each func([]Job) error) error
	// Ended returns the jobs of a run that ended with an answer or an error, after an ordinal and up to another.
	Ended func(ctx context.Context, db store.Querier, account, run store.ID, after, last int32) ([]EndedJob, error)
}

// An EndedJob is a job that ended with an answer or an error.
type EndedJob struct {
	Ordinal int32
	Failed  bool
	Stored  bool // its answer is stored
}

// A Counter counts answers.
type Counter struct {
	cfg       Config
	recounted atomic.Uint64
	looked    time.Time // when Recount last looked at all accounts

	mu       sync.Mutex
	accounts_ map[store.ID]*accountBrands
	runs     map[runKey]*countedRun
}

type runKey struct{ account, run store.ID }

// maxCached bounds the accounts and the runs that a Counter remembers. Beyond it, it forgets all.
const maxCached = 1000

// NewCounter returns a Counter.
func NewCounter(cfg Config) *Counter {
	return &Counter{cfg: cfg, accounts_: make(map[store.ID]*accountBrands), runs: make(map[runKey]*countedRun)}
}

// Recounted returns how many answers the process has recounted.
func (c *Counter) Recounted() uint64 { return c.recounted.Load() }

// accountBrands are the active brands of an account at a revision.
type accountBrands struct {
	revision int64
	numbers  []int32 // by the index of the matcher's brand
	own      []bool  // by number
	matcher  *match.Matcher
}

func (b *accountBrands) isOwn(brand int32) bool { return int(brand) < len(b.own) && b.own[brand] }

// A countedRun is what counting needs of a run. It never changes.
type countedRun struct {
	account, id store.ID
	repetitions int32
	total       int32
	final       bool // when it was read
	questions   []string
	texts       []*match.Question
}

// Count writes the facts of jobs in the transaction that ends them, at the revision that their account's brands have now.
func (c *Counter) Count(ctx context.Context, tx store.Tx, jobs []Job) error {
	byRun := make(map[runKey][]Job)
	for _, j := range jobs {
		k := runKey{j.Account, j.Run}
		byRun[k] = append(byRun[k], j)
	}
	var b pgx.Batch
	var rows []chunkRow
	for k, of := range byRun {
		brands, err := c.brands(ctx, tx, k.account)
		if err != nil {
			return err
		}
		r, err := c.run(ctx, tx, k.account, k.run)
		if err != nil {
			return err
		}
		rows = append(rows, newChunks(k.account, r, brands.revision, c.count(brands, r, of), brands.isOwn, false, false)...)
	}
	batchChunks(&b, rows)
	return tx.SendBatch(ctx, &b).Close()
}

// brands returns the active brands of an account. They are read only if the revision has changed since they were read last.
func (c *Counter) brands(ctx context.Context, db store.Querier, account store.ID) (*accountBrands, error) {
	c.mu.Lock()
	known := c.accounts_[account]
	c.mu.Unlock()
	revision, err := brands.Revision(ctx, db, account)
	if err != nil || known != nil && known.revision == revision {
		return known, err
	}
	active, revision, err := brands.Active(ctx, db, account)
	if err != nil {
		return nil, err
	}
	b := newAccountBrands(active, revision)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.accounts_) >= maxCached {
		clear(c.accounts_)
	}
	c.accounts_[account] = b
	return b, nil
}

// run returns what counting needs of a run.
func (c *Counter) run(ctx context.Context, db store.Querier, account, id store.ID) (*countedRun, error) {
	k := runKey{account, id}
	c.mu.Lock()
	known := c.runs[k]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	r := &countedRun{account: account, id: id}
	if err := db.QueryRow(ctx, selectCountedRun, account, id).Scan(&r.repetitions, &r.total, &r.final, &r.questions); err != nil {
		return nil, err
	}
	return r, c.readTexts(ctx, db, r)
}
