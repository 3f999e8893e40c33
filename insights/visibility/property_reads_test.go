package visibility_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"aiv/insights/visibility"
)

// checkSources compares the sources of a random query.
func (w *world) checkSources(t *testing.T) {
	t.Helper()
	q := &visibility.SourceQuery{Filter: w.filter(), ByPage: w.r.IntN(2) == 0, Gap: w.r.IntN(3) == 0, Brand: w.someBrand()}
	if w.r.IntN(4) == 0 {
		q.Owner = pick(w.r, []string{"own", "competitor", "other"})
	}
	wantAnswers, wantRows := w.sources(q)
	answers, rows := w.readSources(t, w.account, q)
	if diff := cmp.Diff(wantAnswers, answers) + cmp.Diff(wantRows, rows); diff != "" {
		t.Errorf("sources of %s (-want +got):\n%s", describe(q), diff)
	}
}

// checkComparison compares a comparison of two runs or two windows.
func (w *world) checkComparison(t *testing.T) {
	t.Helper()
	current := visibility.Query{Filter: w.filter(), Zone: time.UTC, Brand: w.someBrand()}
	current.From, current.To, current.Run = nil, nil, nil
	baseline := current
	if w.r.IntN(2) == 0 {
		current.Run, baseline.Run = &pick(w.r, w.runs).id, &pick(w.r, w.runs).id
	} else {
		middle := pick(w.r, w.runs).created
		current.From, current.To = &middle, new(middle.AddDate(0, 0, 1+w.r.IntN(30)))
		baseline.From, baseline.To = new(middle.AddDate(0, 0, -1-w.r.IntN(30))), &middle
	}
	if diff := cmp.Diff(w.comparison(&current, &baseline), w.readComparison(t, w.account, &current, &baseline), compareFloats); diff != "" {
		t.Errorf("%s against %s (-want +got):\n%s", describe(current), describe(baseline), diff)
	}
}

// checkFacts compares what the results of a run show, and which of them a choice by brand selects.
func (w *world) checkFacts(t *testing.T) {
	t.Helper()
	run := pick(w.r, w.runs)
	want := make(map[int32]visibility.Fact)
	for _, j := range run.jobs {
		if w.status(j) == "ok" {
			f := j.facts.Fact
			f.Brands = slices.DeleteFunc(slices.Clone(f.Brands), func(b visibility.BrandFact) bool { return w.brandOf(b.Brand) == nil })
			want[j.ordinal] = f
		}
	}
	got, active, err := visibility.ReadFacts(t.Context(), w.pool, w.account, run.id, 1, int32(len(run.jobs)))
	must(t, err)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("facts of %s (-want +got):\n%s", run.id.Text("run"), diff)
	}

	if len(active) == 0 {
		return
	}
	brand := pick(w.r, active)
	choice := visibility.Choice{Brand: brand.ID}
	if w.r.IntN(2) == 0 {
		choice.Mentioned = new(w.r.IntN(2) == 0)
	}
	if choice.Mentioned == nil || w.r.IntN(2) == 0 {
		choice.Cited = new(w.r.IntN(2) == 0)
	}
	var wantOrdinals, gotOrdinals []int32
	for _, j := range run.jobs {
		if w.status(j) != "ok" {
			continue
		}
		b := j.facts.of(&brand)
		if (choice.Mentioned == nil || *choice.Mentioned == (b.Mentions > 0)) &&
			(choice.Cited == nil || j.facts.Known && *choice.Cited == (b.Citations > 0)) {
			wantOrdinals = append(wantOrdinals, j.ordinal)
		}
	}
	for step, after := 1+w.r.IntN(5), int32(0); ; {
		page, err := visibility.Choose(t.Context(), w.pool, w.account, run.id, choice, after, step)
		must(t, err)
		gotOrdinals = append(gotOrdinals, page...)
		if len(page) < step {
			break
		}
		after = page[len(page)-1]
	}
	if diff := cmp.Diff(wantOrdinals, gotOrdinals); diff != "" {
		t.Errorf("chosen of %s (-want +got):\n%s", run.id.Text("run"), diff)
	}
}
