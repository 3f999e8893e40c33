package visibility

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/store"
)

// TestPreparedJobIsCountedByItsBrands: a job that was matched before its transaction is counted by the brands at the time of the transaction.
func TestPreparedJobIsCountedByItsBrands(t *testing.T) {
	t.Parallel()
	p := newPreviews(t)
	create := func(name string) {
		t.Helper()
		c := brands.Change{Kind: new(brands.Competitor), Name: &name, MatchCase: new(false)}
		if _, err := brands.Create(t.Context(), p.pool, p.account, store.NewID(), c); err != nil {
			t.Fatal(err)
		}
	}
	create("Ostrel")
	const text = "Ostrel is good, Halden is better."
	run := p.run(t, 1, text, text, text)
	// settle counts a job, and returns its brands.
	settle := func(j Job) []BrandFact {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error {
			var b pgx.Batch
			if err := p.counter.Count(t.Context(), tx, &b, []Job{j}); err != nil {
				return err
			}
			return tx.SendBatch(t.Context(), &b).Close()
		})
		if err != nil {
			t.Fatal(err)
		}
		facts, _, err := ReadFacts(t.Context(), p.pool, p.account, run, j.Ordinal, j.Ordinal)
		if err != nil {
			t.Fatal(err)
		}
		return facts[j.Ordinal].Brands
	}
	job := func(ordinal int32) Job {
		return Job{Account: p.account, Run: run, Ordinal: ordinal, Answer: p.answers[run][ordinal-1]}
	}
	ostrel := BrandFact{Brand: 1, Mentions: 1, Position: 1}
	both := []BrandFact{ostrel, {Brand: 2, Mentions: 1, Position: 2}}

	if prepared := p.counter.Prepare([]Job{job(1)})[0]; prepared != nil {
		t.Errorf("got %+v before the brands were read", prepared)
	}
	if diff := cmp.Diff([]BrandFact{ostrel}, settle(job(1))); diff != "" {
		t.Errorf("not prepared (-want +got):\n%s", diff)
	}
	second, third := job(2), job(3)
	second.Prepared = p.counter.Prepare([]Job{second})[0]
	third.Prepared = p.counter.Prepare([]Job{third})[0]
	if second.Prepared == nil || third.Prepared == nil {
		t.Fatal("the jobs were not prepared")
	}
	second.Answer = &Answer{} // which is not matched again
	if diff := cmp.Diff([]BrandFact{ostrel}, settle(second)); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
	create("Halden")
	if diff := cmp.Diff(both, settle(third)); diff != "" {
		t.Errorf("prepared before a change (-want +got):\n%s", diff)
	}
}
