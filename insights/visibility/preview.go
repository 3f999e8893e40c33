package visibility

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/brands/match"
	"aiv/store"
)

// Bounds of a preview.
const (
	previewAnswers = 200
	previewBytes   = 4 << 20 // of texts
	previewSamples = 20
	previewJobs    = 1000 // whose facts are in memory at a time
	previewStep    = 16   // answers that are read at a time; each may have 256 KiB
	previewRuns    = 50   // that are read at a time
)

// ErrRunNotFound reports that the account has no such run.
var ErrRunNotFound = errors.New("the account has no such run")

// A Draft is a brand that is not saved.
type Draft struct {
	Change   brands.Change
	Replaces *store.ID // the brand that it would replace; nil: none
	NewID    store.ID  // of a brand that it would add
}

// A Preview is what a draft would match.
type Preview struct {
	Answers   int      // that were matched
	Mentioned int      // of these, how many mention the draft
	Cited     int      // of these, how many cite one of its pages
	Names     []string // as match.Matcher.Names returns them
	Samples   []Sample
}

// A Sample is the first occurrence of a draft in an answer.
type Sample struct {
	Run     store.ID
	Ordinal int32
	Matched string // its visible text
	Excerpt string // the matched text with the text around it
	Flag    string // its first flag; "" if it has none
}

// Preview matches stored answers with a draft among the active brands of the account: newest run first, in the run's
// order. It matches answers that are neither empty nor truncated, up to bounds of their number and size. If run is not
// nil, it matches only answers of that run. Preview returns ErrRunNotFound, or the errors of brands.Draft.
func (c *Counter) Preview(ctx context.Context, db store.Querier, account store.ID, d *Draft, run *store.ID) (*Preview, error) {
	p := &previewer{Counter: c, account: account, left: previewBytes}
	err := store.Snapshot(ctx, db, func(tx pgx.Tx) error {
		active, draft, err := brands.Draft(ctx, tx, account, d.Replaces, d.NewID, d.Change)
		if err != nil {
			return err
		}
		// The other brands are part of the matcher, because they may win overlaps.
		p.matcher, p.draft = brands.Compile(active), draft
		p.Names = p.matcher.Names(draft)
		if run != nil {
			return p.previewRun(ctx, tx, *run)
		}
		return p.previewRuns(ctx, tx)
	})
	return &p.Preview, err
}

// A previewer makes a preview.
type previewer struct {
	*Counter
	account store.ID
	matcher *match.Matcher
	draft   int // index of the matcher's brand
	left    int // bytes of texts that may still be matched
	Preview
}

// full reports whether a bound was reached.
func (p *previewer) full() bool { return p.left < 0 || p.Answers == previewAnswers }

// previewRuns matches answers of all runs.
func (p *previewer) previewRuns(ctx context.Context, tx pgx.Tx) error {
	type key struct {
		Created time.Time
		ID      store.ID
	}
	var last *key
	for !p.full() {
		q := store.KeysetQuery{Select: `SELECT created_at, id FROM measurement_runs`, Order: []string{"created_at", "id"}}
		// ReadPage returns one row more than the limit, so this reads previewRuns.
		q.Page.Limit = previewRuns - 1 // one more is read
		if last != nil {
			q.Page.After = &store.Position{Time: last.Created, ID: last.ID}
		}
		q.Where("account_id = ?", p.account)
		q.Where("jobs_completed > 0 AND NOT answers_deleted")
		runs, err := store.ReadPage[key](ctx, tx, &q)
		if err != nil {
			return err
		}
		for i := range runs {
			// Runs are read page by page. Each page continues after the last run of the one before.
			if last = &runs[i]; p.full() {
				return nil
			}
			if err := p.previewRun(ctx, tx, last.ID); err != nil {
				return err
			}
		}
		if len(runs) < previewRuns {
			return nil
		}
	}
	return nil
}

// previewRun matches answers of a run.
func (p *previewer) previewRun(ctx context.Context, tx pgx.Tx, id store.ID) error {
	r, err := readRun(ctx, tx, p.account, id, "")
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrRunNotFound
	}
	if err != nil {
		return err
	}
	if err := p.readTexts(ctx, tx, r); err != nil {
		return err
	}
	// Facts are read for a part of the jobs at a time, to bound memory.
	for after := int32(0); after < r.total && !p.full(); after += previewJobs {
		// Answers are matched in the order of the run, so that a preview is the same each time.
		ordinals, err := p.stored(ctx, tx, id, after, after+previewJobs)
		if err != nil {
			return err
		}
		for step := range slices.Chunk(ordinals, previewStep) {
			err := p.cfg.Answers(ctx, tx, p.account, id, step, func(jobs []Job) error {
				for i := range jobs {
					question := r.texts[int(jobs[i].Ordinal-1)/int(r.repetitions)%len(r.texts)]
					if err := p.match(ctx, &jobs[i], question); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil || p.full() {
				return err
			}
		}
	}
	return nil
}

// stored returns the jobs of a run, from after+1 to last, whose answers are stored and, if they have facts, are neither
// empty nor truncated.
func (p *previewer) stored(ctx context.Context, tx pgx.Tx, run store.ID, after, last int32) (ordinals []int32, err error) {
	ended, err := p.cfg.Ended(ctx, tx, p.account, run, after, last)
	if err != nil {
		return nil, err
	}
	// left has the jobs to leave out. An answer without facts may be empty or truncated, too; match leaves it out.
	left := make(map[int32]bool)
	err = eachFact(ctx, tx, func(f *Fact) { left[f.Ordinal] = f.Status != OK }, selectFactsBetween, p.account, run, after, last)
	for _, job := range ended {
		if job.Stored && !left[job.Ordinal] {
			ordinals = append(ordinals, job.Ordinal)
		}
	}
	return ordinals, err
}

// match matches one answer, unless a bound is reached.
func (p *previewer) match(ctx context.Context, j *Job, question string) error {
	// Matching many answers takes long, so a request that has ended is noticed here.
	if p.full() || j.Answer.Truncated || ctx.Err() != nil {
		return ctx.Err()
	}
	if p.left -= len(j.Answer.Text); p.left < 0 {
		return nil
	}
	a := match.Answer{Text: j.Answer.Text, Question: p.matcher.Question(question), Citations: j.Answer.Citations}
	found := p.matcher.Match(a)
	if found.Empty {
		// An empty answer does not count against the bound.
		p.left += len(a.Text)
		return nil
	}
	p.Answers++
	for _, b := range found.Brands {
		if b.Brand != p.draft {
			continue
		}
		if b.Mentions > 0 {
			p.Mentioned++
		}
		if b.Citations > 0 {
			p.Cited++
		}
		if len(p.Samples) == previewSamples {
			continue
		}
		if s, ok := p.matcher.Sample(p.draft, a); ok {
			of := Sample{Run: j.Run, Ordinal: j.Ordinal, Matched: s.Matched, Excerpt: s.Excerpt}
			if flags := s.Flags.Strings(); len(flags) > 0 {
				of.Flag = flags[0]
			}
			p.Samples = append(p.Samples, of)
		}
	}
	return nil
}
