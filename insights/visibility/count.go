package visibility

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
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

// Config contains what a Counter depends on. Its functions read tables of other packages.
type Config struct {
	Pool   *pgxpool.Pool // for Recount and Merge
	Outage *store.Outage // on Citus

	// Questions returns the texts of questions of an account, in the order of ids.
	Questions func(ctx context.Context, db store.Querier, account store.ID, ids []string) ([]string, error)
	// Answers calls each with the stored answers of jobs of a run, a few in each call. It leaves out jobs without a
	// stored answer.
	Answers func(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32, each func([]Job) error) error
	// Ended returns the jobs of a run, from after+1 to last, that ended with an answer or an error.
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
	looked    time.Time // when Recount, whose calls do not overlap, last looked at all accounts

	// mu protects the fields below. It is not held while the database is read or an answer is matched.
	mu         sync.Mutex
	behind     []store.ID // the accounts with answers to recount, when Recount last looked at all accounts
	brandCache cache[store.ID, *accountBrands]
	runCache   cache[runKey, *countedRun]
	asked      int // bytes of the questions that were kept since all were dropped
}

// A runKey identifies a run.
type runKey struct{ Account, Run store.ID }

// NewCounter returns a Counter.
func NewCounter(cfg Config) *Counter {
	// Without a limit, SetMemoryLimit returns the greatest int64, and the bound is 1 GiB.
	maxBrandBytes := int(min(debug.SetMemoryLimit(-1)/2, 1<<30)) // -1 only returns the limit
	return &Counter{
		cfg:        cfg,
		brandCache: newCache[store.ID, *accountBrands](maxBrandBytes),
		runCache:   newCache[runKey, *countedRun](maxRunBytes),
	}
}

// Recounted returns how many answers the process has recounted.
func (c *Counter) Recounted() uint64 { return c.recounted.Load() }

// accountBrands are the active brands of an account at a version.
type accountBrands struct {
	version brands.Version
	numbers []int32 // by the index of the matcher's brand
	own     []bool  // by number, up to the last own brand
	matcher *match.Matcher

	questions map[string]*match.Question // by text; protected by the Counter's mu
}

// isOwn reports whether a brand, by its number, is an active own brand.
func (b *accountBrands) isOwn(brand int32) bool { return int(brand) < len(b.own) && b.own[brand] }

// A countedRun is what counting needs of a run. It never changes.
type countedRun struct {
	account, id store.ID
	repetitions int32
	total       int32
	final       bool // when it was read
	questions   []string
	texts       []string // of the questions
}

// Count counts jobs in the transaction that ends them, at the revision that their account's brands have now. It adds
// the statement that inserts the facts to the batch.
func (c *Counter) Count(ctx context.Context, tx store.Tx, b *pgx.Batch, jobs []Job) error {
	byRun := make(map[runKey][]Job)
	var accounts []store.ID
	for _, j := range jobs {
		k := runKey{j.Account, j.Run}
		if byRun[k] == nil && !slices.Contains(accounts, j.Account) {
			accounts = append(accounts, j.Account)
		}
		byRun[k] = append(byRun[k], j)
	}
	// The versions are read in this transaction: a change that commits later raises the revision, and so makes the
	// facts stale.
	versions, err := brands.ReadVersions(ctx, tx, accounts)
	if err != nil {
		return err
	}
	var rows []chunkRow
	for k, ofRun := range byRun {
		active, err := c.brandsAt(ctx, tx, k.Account, versions[slices.Index(accounts, k.Account)])
		if err != nil {
			return err
		}
		r, err := c.run(ctx, tx, k.Account, k.Run)
		if err != nil {
			return err
		}
		// The chunks may be small. Merge joins them later, so that the settlement changes no row that another one
		// changes.
		rows = append(rows, newChunks(r, active.version.Revision, c.count(active, r, ofRun), active.isOwn, false, false)...)
	}
	batchChunks(b, rows)
	return nil
}

// A Prepared is the fact of a job that was counted before its transaction began. It is used if the brands have not
// changed since.
type Prepared struct {
	Answer *Answer
	brands *accountBrands
	fact   Fact
}

// Prepare counts jobs before the transaction that ends them, and returns the Prepared of each: nil for a job whose
// brands or run are not cached.
func (c *Counter) Prepare(jobs []Job) []*Prepared {
	all := make([]*Prepared, len(jobs))
	byRun := make(map[runKey][]int)
	for i := range jobs {
		k := runKey{jobs[i].Account, jobs[i].Run}
		byRun[k] = append(byRun[k], i)
	}
	for k, indexes := range byRun {
		c.mu.Lock()
		b, r := c.brandCache.get(k.Account), c.runCache.get(k)
		c.mu.Unlock()
		// The job stays without a fact. Count reads the brands and the run in its transaction and caches them.
		if b == nil || r == nil {
			continue
		}
		ofRun := make([]Job, len(indexes))
		for i, index := range indexes {
			ofRun[i] = jobs[index]
		}
		prepared := make([]Prepared, len(indexes))
		for i, f := range c.count(b, r, ofRun) {
			prepared[i] = Prepared{ofRun[i].Answer, b, f}
			all[indexes[i]] = &prepared[i]
		}
	}
	return all
}

// brands returns the active brands of an account.
func (c *Counter) brands(ctx context.Context, db store.Querier, account store.ID) (*accountBrands, error) {
	version, err := brands.ReadVersion(ctx, db, account)
	if err != nil {
		return nil, err
	}
	return c.brandsAt(ctx, db, account, version)
}

// brandsAt returns the active brands of an account; version is their current version. It reads the brands only if the
// cached ones have another version.
func (c *Counter) brandsAt(ctx context.Context, db store.Querier, account store.ID, version brands.Version) (*accountBrands, error) {
	c.mu.Lock()
	known := c.brandCache.get(account)
	c.mu.Unlock()
	if known != nil && known.version.Equal(version) {
		return known, nil
	}
	// The lock is not held: two goroutines may read the same brands, and the later one replaces the cached ones.
	active, revision, err := brands.ReadActive(ctx, db, account)
	if err != nil {
		return nil, err
	}
	// If it was raised after the version was read, no version equals this one, and the brands are read again.
	version.Revision = revision
	b := newAccountBrands(active, version)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brandCache.put(account, b, brandBytes(active))
	return b, nil
}

// run returns what counting needs of a run.
func (c *Counter) run(ctx context.Context, db store.Querier, account, id store.ID) (*countedRun, error) {
	k := runKey{account, id}
	c.mu.Lock()
	known := c.runCache.get(k)
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	r, err := readRun(ctx, db, account, id, "")
	if err != nil {
		return nil, err
	}
	if err := c.readTexts(ctx, db, r); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runCache.put(k, r, runBytes(r))
	return r, nil
}

// lockCountedRun returns what counting needs of a run, and keeps the run from being deleted until the end of the
// transaction. It returns nil if the run does not exist, or if it or its answers are being deleted.
func (c *Counter) lockCountedRun(ctx context.Context, tx pgx.Tx, account, id store.ID) (*countedRun, error) {
	// FOR KEY SHARE does not block settlements, which change the counters of the run.
	r, err := readRun(ctx, tx, account, id, " FOR KEY SHARE SKIP LOCKED")
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r, c.readTexts(ctx, tx, r)
}

// readRun reads what counting needs of a run, but the texts, by a statement that ends with lock. It returns
// pgx.ErrNoRows if there is no such run.
func readRun(ctx context.Context, db store.Querier, account, id store.ID, lock string) (*countedRun, error) {
	r := &countedRun{account: account, id: id}
	return r, db.QueryRow(ctx, `
SELECT repetitions, total_jobs, finished_at IS NOT NULL, question_ids FROM measurement_runs WHERE account_id = $1 AND id = $2`+lock,
		account, id).Scan(&r.repetitions, &r.total, &r.final, &r.questions)
}

// readTexts reads the questions of a run. Their texts never change.
func (c *Counter) readTexts(ctx context.Context, db store.Querier, r *countedRun) (err error) {
	r.texts, err = c.cfg.Questions(ctx, db, r.account, r.questions)
	return err
}

// count returns the facts of jobs of a run. It uses all processors.
func (c *Counter) count(b *accountBrands, r *countedRun, jobs []Job) []Fact {
	facts := make([]Fact, len(jobs))
	parts := min(runtime.GOMAXPROCS(0), len(jobs)/8+1)
	var group sync.WaitGroup
	for part := range parts {
		group.Go(func() {
			for i := part; i < len(jobs); i += parts {
				facts[i] = c.fact(b, r, &jobs[i])
			}
		})
	}
	group.Wait()
	return facts
}

// question returns a question as the matcher takes it. It is kept by its text, because runs repeat questions.
func (c *Counter) question(b *accountBrands, text string) *match.Question {
	c.mu.Lock()
	known := b.questions[text]
	c.mu.Unlock()
	if known != nil {
		return known
	}
	// Two goroutines may read the same question at once. Either result may stay.
	q := b.matcher.Question(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	bytes := 20 + len(text)
	// Which questions are still used is not known, so all are dropped at once.
	if c.asked += bytes; c.asked > maxAsked {
		for _, of := range c.brandCache.entries {
			of.value.questions = make(map[string]*match.Question)
		}
		c.asked = bytes
	}
	b.questions[text] = q
	return q
}

// fact counts one job, unless it was counted before with the same brands.
func (c *Counter) fact(b *accountBrands, r *countedRun, j *Job) Fact {
	// The same pointer means the same version of the brands, because a new version makes another one.
	if j.Prepared != nil && j.Prepared.brands == b {
		return j.Prepared.fact
	}
	f := Fact{Ordinal: j.Ordinal}
	if j.Answer == nil {
		f.Status = Failed
		return f
	}
	f.Version = j.Answer.Version
	if j.Answer.Truncated {
		f.Status = Truncated
		return f
	}
	// Ordinals count from 1: for each model all questions, each of them with its repetitions in a row.
	question := c.question(b, r.texts[int(j.Ordinal-1)/int(r.repetitions)%len(r.texts)])
	found := b.matcher.Match(match.Answer{Text: j.Answer.Text, Question: question, Citations: j.Answer.Citations})
	if found.Empty {
		f.Status = Empty
		return f
	}
	f.Brands, f.Pages = slices.Grow(f.Brands, len(found.Brands)), slices.Grow(f.Pages, len(found.Pages))
	// An answer without a search and without pages says nothing about citations.
	f.Known = j.Answer.Searched == nil || *j.Answer.Searched || len(found.Pages) > 0
	for i := range found.Brands {
		result := &found.Brands[i]
		f.Brands = append(f.Brands, BrandFact{Brand: b.numbers[result.Brand], Mentions: int32(result.Mentions), Position: int32(result.Position),
			Citations: int32(result.Citations), Flags: result.Flags})
	}
	// The encoding needs ascending numbers, and the matcher's order is by name.
	slices.SortFunc(f.Brands, func(a, b BrandFact) int { return int(a.Brand - b.Brand) })
	for _, p := range found.Pages {
		page := Page{Key: p.Key, Host: p.Host}
		if p.Owner >= 0 {
			page.Owner = b.numbers[p.Owner]
		}
		f.Pages = append(f.Pages, page)
	}
	return f
}

// newAccountBrands returns the brands of an account with their matcher. Compiling it takes most of the time.
func newAccountBrands(active []brands.Brand, version brands.Version) *accountBrands {
	b := &accountBrands{version: version, matcher: brands.Compile(active), questions: make(map[string]*match.Question)}
	for i := range active {
		brand := &active[i]
		b.numbers = append(b.numbers, brand.Number)
		if brand.Kind == brands.Own {
			for int(brand.Number) >= len(b.own) {
				b.own = append(b.own, false)
			}
			b.own[brand.Number] = true
		}
	}
	return b
}
