package visibility_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/insights/brands/match"
	"aiv/insights/visibility"
)

// checkSources compares the sources of a random query.
func (w *world) checkSources(t *testing.T) {
	t.Helper()
	q := &visibility.SourceQuery{Filter: w.filter(), ByPage: w.r.IntN(2) == 0, Gap: w.r.IntN(3) == 0}
	if w.r.IntN(4) == 0 {
		q.Owner = pick(w.r, []string{"own", "competitor", "other"})
	}
	if w.r.IntN(4) == 0 && len(w.active) > 0 {
		q.Brand = new(pick(w.r, w.active).ID)
	}
	wantAnswers, wantRows := w.sources(q)
	answers, rows := w.readSources(t, w.account, q)
	if diff := cmp.Diff(wantAnswers, answers) + cmp.Diff(wantRows, rows); diff != "" {
		t.Errorf("sources of %s pages=%t gap=%t owner=%q brand=%v (-want +got):\n%s", describeFilter(&q.Filter), q.ByPage, q.Gap, q.Owner, q.Brand, diff)
	}
}

// checkComparison compares a comparison of two runs or two windows.
func (w *world) checkComparison(t *testing.T) {
	t.Helper()
	current := visibility.Query{Filter: w.filter(), Zone: time.UTC}
	current.From, current.To, current.Run = nil, nil, nil
	baseline := current
	if w.r.IntN(2) == 0 {
		current.Run, baseline.Run = &pick(w.r, w.runs).id, &pick(w.r, w.runs).id
	} else {
		middle := pick(w.r, w.runs).created
		current.From, current.To = &middle, new(middle.AddDate(0, 0, 1+w.r.IntN(30)))
		baseline.From, baseline.To = new(middle.AddDate(0, 0, -1-w.r.IntN(30))), &middle
	}
	if w.r.IntN(4) == 0 && len(w.active) > 0 {
		current.Brand = new(pick(w.r, w.active).ID)
		baseline.Brand = current.Brand
	}
	if diff := cmp.Diff(w.comparison(&current, &baseline), w.readComparison(t, w.account, &current, &baseline), compareFloats); diff != "" {
		t.Errorf("%s against %s (-want +got):\n%s", describeQuery(&current), describeQuery(&baseline), diff)
	}
}

// checkFacts compares what the results of a run show, and which of them a choice by brand selects.
func (w *world) checkFacts(t *testing.T) {
	t.Helper()
	run := pick(w.r, w.runs)
	type shown struct {
		Mentions, Position, Citations int
		Flags                         match.Flags
	}
	want, got := make(map[int32]map[string]shown), make(map[int32]map[string]shown)
	for _, j := range run.jobs {
		if w.status(j) != "ok" {
			continue
		}
		want[j.ordinal] = make(map[string]shown)
		for id, b := range j.facts.brands {
			if w.brandOf(id) != nil {
				want[j.ordinal][id.Text("brand")] = shown{b.mentions, b.position, b.citations, b.flags}
			}
		}
	}
	facts, active, err := visibility.ReadFacts(t.Context(), w.pool, w.account, run.id, 1, int32(len(run.jobs)))
	must(t, err)
	ids := make(map[int32]string)
	for _, b := range active {
		ids[b.Number] = b.ID.Text("brand")
	}
	for ordinal, f := range facts {
		got[ordinal] = make(map[string]shown)
		for _, b := range f.Brands {
			got[ordinal][ids[b.Brand]] = shown{int(b.Mentions), int(b.Position), int(b.Citations), b.Flags}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts of %s (-want +got):\n%s", run.id.Text("run"), diff)
	}

	if len(active) == 0 {
		return
	}
	choice := visibility.Choice{Brand: pick(w.r, active).ID}
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
		b := j.facts.brands[choice.Brand]
		if (choice.Mentioned == nil || *choice.Mentioned == (b.mentions > 0)) && (choice.Cited == nil || j.facts.known && *choice.Cited == (b.citations > 0)) {
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
