package visibility

import (
	"fmt"
	"testing"
)

// TestBasket: answers are compared with those that have measured the same, of the same served model, whatever date ends
// its version. The golden files have a whole comparison.
func TestBasket(t *testing.T) {
	const same, notMeasured, unknown, changed = "1 {0 0 0}", "0 {1 0 0}", "0 {0 1 0}", "0 {0 0 1}"
	for _, tt := range []struct {
		current, baseline string // the reported version; "-": none
		other             func(*run)
		want              string
	}{
		{"m-5", "m-5", nil, same}, {"m-5-2026-02-11", "m-5@20260301", nil, same}, {"m-5@2099-12-31", "m-5", nil, same}, {"", "-20260301", nil, same},
		{"m-5-2026-02-11-2026-02-12", "m-5-2026-02-11", nil, changed}, {"m-5-2026-13-01", "m-5", nil, changed}, {"m-5-2026-00-01", "m-5", nil, changed},
		{"m-5-2026-01-32", "m-5", nil, changed}, {"m-5-2026-01-00", "m-5", nil, changed}, {"m-5-1926-01-01", "m-5", nil, changed},
		{"m-5-2026-0101", "m-5", nil, changed}, {"m-5.20260101", "m-5", nil, changed}, {"m-5", "m-6", nil, changed}, {"m-5", "-", nil, changed},
		{"-", "m-5", nil, unknown}, {"-", "-", nil, unknown},
		{"-", "-", func(r *run) { r.questions = []string{"q2"} }, notMeasured}, {"m", "m", func(r *run) { r.models = []string{"m2"} }, notMeasured},
		{"m", "m", func(r *run) { r.country = "DE" }, notMeasured}, {"m", "m", func(r *run) { r.language = "de" }, notMeasured},
		{"m", "m", func(r *run) { r.measured = "closed_book" }, notMeasured},
	} {
		sideOf := func(version string, change func(*run)) *side {
			r, c := run{questions: []string{"q"}, models: []string{"m"}, country: "IT", language: "it", measured: "grounded"}, cell{ok: 1}
			if change != nil {
				change(&r)
			}
			if version != "-" {
				c.version = &version
			}
			s := newSide(&grouping{})
			s.add(&r, &c)
			return s
		}
		_, got := sideOf(tt.current, nil).basket(sideOf(tt.baseline, tt.other))
		if got := fmt.Sprint(got.Compared, got.LeftOut); got != tt.want {
			t.Errorf("%q against %q: %s are compared and left out, want %s", tt.current, tt.baseline, got, tt.want)
		}
	}
}

// TestMovedQuestions: questions whose rate changed are listed by the size of the difference, then by id, 20 at most.
func TestMovedQuestions(t *testing.T) {
	var ids []string
	now, before, want := make(map[string][]*sideSum), make(map[string][]*sideSum), ""
	for i := range 26 {
		id := fmt.Sprintf("q%02d", i)
		ids = append(ids, id)
		// Of 12 answers 0 to 6 have changed, up or down; question 25 has none before.
		now[id], before[id] = []*sideSum{{ok: 6, known: int32(i % 7)}, {ok: 6}}, []*sideSum{{ok: int32(12 * (25 - i)), known: 0}}
	}
	for change := 6; change > 0; change-- {
		for i := change; i < 25; i += 7 {
			want += ids[i] + " "
		}
	}
	c := newRateChange(ids, now, before, func(s *sideSum) split { return split{s.known, s.ok} }, NoAnswers)
	got := ""
	for _, m := range c.Moved {
		got += m.Question + " "
	}
	if want = want[:20*len("q00 ")]; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
