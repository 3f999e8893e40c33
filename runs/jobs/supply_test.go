package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/store"

	"github.com/google/go-cmp/cmp"
)

// TestRowsBecomeASupply: the spans of an account are ordered, and an account without jobs at a provider is idle there.
func TestRowsBecomeASupply(t *testing.T) {
	t.Parallel()
	row := func(provider string, account byte) supplyRow {
		return supplyRow{provider: &provider, account: &store.ID{account}, codes: []string{"p", "q"}, turns: []int64{1, 2}, maxSpans: new(2)}
	}
	span := func(provider string, account byte, fresh bool, created int64, first int32) supplyRow {
		r := row(provider, account)
		r.fresh, r.run, r.created = &fresh, &store.ID{byte(created)}, new(time.Unix(created, 0))
		r.modelNo, r.first, r.last, r.attempt, r.tries = new(int16(1)), &first, new(first+9), new(int16(0)), new(int16(0))
		return r
	}
	open, limited := "q", "r"
	b := newSupplyBuilder()
	for _, r := range []supplyRow{
		span("p", 1, true, 9, 1), span("p", 1, true, 8, 11), span("p", 1, false, 9, 31), row("p", 2), span("p", 3, true, 7, 1),
		{provider: &limited, capacity: new(5)}, {provider: &open},
	} {
		b.add(&r)
	}
	s, idle := b.done()
	var got []string
	for _, a := range s.accounts {
		for provider, spans := range a.spans {
			line := fmt.Sprintf("%d at %s, more %t:", a.id[0], provider, a.more[provider])
			for _, x := range spans {
				line += fmt.Sprintf(" %d/%d-%d", x.run[0], x.first, x.last)
			}
			got = append(got, line)
		}
	}
	want := "1 at p, more true: 8/11-20 9/31-40 9/1-10; 3 at p, more false: 7/1-10"
	if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"p": unlimited, "q": unlimited, "r": 5}, s.capacity); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]store.ID{{2}}, idle.accounts); diff != "" {
		t.Errorf("idle accounts (-want +got):\n%s", diff)
	}
}

// TestFreshSpanMayBeQueued: a fresh span whose first job is that of its model may be of a run that is queued.
func TestFreshSpanMayBeQueued(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		span span
		want bool
	}{
		{span{fresh: true, modelNo: 1, firstRead: 1, first: 3, last: 10}, false},
		{span{fresh: true, modelNo: 1, firstRead: 2, first: 3, last: 10}, true},
		{span{fresh: true, modelNo: 3, firstRead: 21, first: 21, last: 30}, false},
		{span{fresh: true, modelNo: 3, firstRead: 22, first: 22, last: 30}, true},
		{span{fresh: true, modelNo: 3, firstRead: 3, first: 4, last: 3}, false}, // the only job of its model
		{span{firstRead: 1, first: 1, last: 10, attempt: 1}, true},
	} {
		if got := test.span.begun(); got != test.want {
			t.Errorf("%+v: %t", test.span, got)
		}
	}
}
