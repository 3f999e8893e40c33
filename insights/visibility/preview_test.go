package visibility

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights/brands"
	"aiv/store"
	"aiv/store/storetest"
)

// previews is a database with runs, whose answers are in memory.
type previews struct {
	pool    *pgxpool.Pool
	counter *Counter
	account store.ID
	answers map[store.ID][]*Answer // by run; nil: the job has not ended
	read    int                    // answers
}

func newPreviews(t *testing.T) *previews {
	t.Helper()
	p := &previews{pool: storetest.New(t), account: store.NewID(), answers: make(map[store.ID][]*Answer)}
	storetest.Exec(t, p.pool, `INSERT INTO plans (code, features) VALUES ('p', '{api_access}')`,
		`INSERT INTO accounts (id, name, plan_code) VALUES ('`+p.account.UUID()+`', 'a', 'p')`,
		`INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes) SELECT id, id, 'c', 'aiv_live_00000000', sha256('c'), '{}' FROM accounts`)
	p.counter = NewCounter(Config{
		Questions: func(_ context.Context, _ store.Querier, _ store.ID, ids []string) ([]string, error) { return ids, nil },
		Answers: func(_ context.Context, _ store.Querier, account, run store.ID, ordinals []int32, each func([]Job) error) error {
			var jobs []Job
			for _, n := range ordinals {
				jobs = append(jobs, Job{Account: account, Run: run, Ordinal: n, Answer: p.answers[run][n-1]})
			}
			p.read += len(jobs)
			return each(jobs)
		},
		Ended: func(_ context.Context, _ store.Querier, _, run store.ID, after, last int32) (ended []EndedJob, err error) {
			for i, a := range p.answers[run] {
				if n := int32(i + 1); a != nil && n > after && n <= last {
					ended = append(ended, EndedJob{Ordinal: n, Stored: true})
				}
			}
			return ended, nil
		},
	})
	return p
}

// run adds a run that was created some minutes after the others, with one job for each answer.
func (p *previews) run(t *testing.T, minutes int, texts ...string) store.ID {
	t.Helper()
	id := store.NewID()
	for _, text := range texts {
		p.answers[id] = append(p.answers[id], &Answer{Text: text})
	}
	_, err := p.pool.Exec(t.Context(), `
INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids, question_ids, repetitions,
  locale, country, language, total_jobs, jobs_completed, status, started_at, created_at)
VALUES ($1, $2, $1, 'grounded', 'AIVM-1.0', '{m}', '{q}', $3::integer, 'it-IT', 'IT', 'it', $3::integer, $3::integer, 'running', $4, $4)`,
		p.account, id, len(texts), time.Date(2026, 1, 1, 0, minutes, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// preview previews a brand that is called Kovalt.
func (p *previews) preview(t *testing.T, run *store.ID) *Preview {
	t.Helper()
	p.read = 0
	d := &Draft{NewID: store.NewID(), Change: brands.Change{Kind: new(brands.Own), Name: new("Kovalt"), Domains: []string{"kovalt.com"}}}
	found, err := p.counter.Preview(t.Context(), p.pool, p.account, d, run)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPreviewOrder: answers are matched newest run first, in the run's order, without those that are empty or
// truncated.
func TestPreviewOrder(t *testing.T) {
	t.Parallel()
	p := newPreviews(t)
	older := p.run(t, 1, "Kovalt is old.", "Other words.")
	newer := p.run(t, 2, "Kovalt", "Kovalt is cut", " ", "Words of Kovalt.", "Kovalt had no words.")
	p.answers[newer][1].Truncated = true
	p.answers[older][1].Cite("https://kovalt.com/a", nil)
	p.answers[older] = append(p.answers[older], nil)
	// Facts say of two answers that they are not counted, at a revision that is not the present one.
	err := pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		batchChunks(&b, newChunks(p.account, &countedRun{account: p.account, id: newer, repetitions: 5, total: 5, questions: []string{"q"}}, 0,
			[]Fact{{Ordinal: 1}, {Ordinal: 5, Status: Empty}}, func(int32) bool { return false }, false, false))
		return tx.SendBatch(t.Context(), &b).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	got := p.preview(t, nil)
	want := &Preview{Answers: 4, Mentioned: 3, Cited: 1, Names: []string{"Kovalt"}, Samples: []Sample{
		{Run: newer, Ordinal: 1, Matched: "Kovalt", Excerpt: "Kovalt"},
		{Run: newer, Ordinal: 4, Matched: "Kovalt", Excerpt: "Words of Kovalt."},
		{Run: older, Ordinal: 1, Matched: "Kovalt", Excerpt: "Kovalt is old."},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all runs (-want +got):\n%s", diff)
	}
	got = p.preview(t, &older)
	if got.Answers != 2 || len(got.Samples) != 1 || got.Samples[0].Run != older {
		t.Errorf("one run: got %+v", got)
	}
	d := &Draft{NewID: store.NewID(), Change: brands.Change{Kind: new(brands.Own), Name: new("Kovalt")}}
	if _, err := p.counter.Preview(t.Context(), p.pool, store.NewID(), d, &older); !errors.Is(err, ErrRunNotFound) {
		t.Errorf("another account's run: got %v", err)
	}
}

// TestPreviewBounds: at most 200 answers are matched, with texts of at most 4 MiB, and 20 of them are shown.
func TestPreviewBounds(t *testing.T) {
	t.Parallel()
	p := newPreviews(t)
	p.run(t, 1, "Kovalt of the oldest run")
	p.run(t, 2, slices.Repeat([]string{"Kovalt"}, 150)...)
	for i := range 120 { // more than are read at a time
		p.run(t, 3+i, "Kovalt")
	}
	got := p.preview(t, nil)
	if got.Answers != previewAnswers || got.Mentioned != previewAnswers || len(got.Samples) != previewSamples {
		t.Errorf("got %d answers, %d that mention the brand, %d samples", got.Answers, got.Mentioned, len(got.Samples))
	}
	if p.read > previewAnswers+previewStep {
		t.Errorf("%d answers were read", p.read)
	}

	long := "Kovalt" + strings.Repeat(" word", 50_000) // 250,006 bytes
	p.run(t, 500, slices.Repeat([]string{long}, 40)...)
	if got := p.preview(t, nil); got.Answers != previewBytes/len(long) {
		t.Errorf("got %d answers of %d bytes", got.Answers, len(long))
	}
}

// TestPreviewReplaces: the draft takes the place of its brand, and conflicts with others.
func TestPreviewReplaces(t *testing.T) {
	t.Parallel()
	p := newPreviews(t)
	run := p.run(t, 1, "Ostrel is good.", "Kovalt is better.")
	var ids []store.ID
	for _, name := range []string{"Ostrel", "Halden"} {
		b, err := brands.Create(t.Context(), p.pool, p.account, store.NewID(), brands.Change{Kind: new(brands.Competitor), Name: &name, MatchCase: new(false)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, b.ID)
	}
	draft := func(name string) *Draft {
		return &Draft{NewID: store.NewID(), Change: brands.Change{Kind: new(brands.Own), Name: &name, Aliases: []string{"Kovalt"}}}
	}
	d := draft("Ostrel")
	if _, err := p.counter.Preview(t.Context(), p.pool, p.account, d, &run); !strings.Contains(fmt.Sprint(err), "name") {
		t.Errorf("a new brand: got %v, want a conflict", err)
	}
	d.Replaces = &ids[0]
	got, err := p.counter.Preview(t.Context(), p.pool, p.account, d, &run)
	if err != nil || got.Mentioned != 2 || !slices.Equal(got.Names, []string{"Ostrel", "Kovalt"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	d.Replaces = new(store.NewID())
	if _, err := p.counter.Preview(t.Context(), p.pool, p.account, d, &run); !errors.Is(err, brands.ErrNotFound) {
		t.Errorf("an unknown brand: got %v", err)
	}
	active, revision, err := brands.ReadActive(t.Context(), p.pool, p.account)
	if err != nil || len(active) != 2 || revision != 2 || active[1].Name != "Ostrel" || active[1].Kind != brands.Competitor {
		t.Errorf("a preview has changed the brands: %+v, revision %d, %v", active, revision, err)
	}
}
