package visibility

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aiv/store/storetest"
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
		{"m-5", "m-5", nil, same}, {"m-5-2026-02-11", "m-5@20260301", nil, same}, {"m-5@2099-12-31", "m-5", nil, same},
		{"", "-20260301", nil, same}, {"m-5-2026-00-01", "m-5", nil, changed},
		{"m-5-2026-02-11-2026-02-12", "m-5-2026-02-11", nil, changed}, {"m-5-2026-13-01", "m-5", nil, changed},
		{"m-5-2026-01-32", "m-5", nil, changed}, {"m-5-2026-01-00", "m-5", nil, changed}, {"m-5-1926-01-01", "m-5", nil, changed},
		{"m-5-2026-0101", "m-5", nil, changed}, {"m-5.20260101", "m-5", nil, changed}, {"m-5", "m-6", nil, changed}, {"m-5", "-", nil, changed},
		{"-", "m-5", nil, unknown}, {"-", "-", nil, unknown},
		{"-", "-", func(r *run) { r.questions = []string{"q2"} }, notMeasured},
		{"m", "m", func(r *run) { r.models = []string{"m2"} }, notMeasured},
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
	ids, want := []string{}, "q08 q09 q03 q04 "
	now, before := make(map[string][]*sideSum), make(map[string][]*sideSum)
	others := map[int]int32{3: 5, 4: 5, 8: 0, 9: 0, 10: 3} // answers of 6 that count; else 4, and before 3
	for i := range 26 {
		id := fmt.Sprintf("q%02d", i)
		mentioned, isOther := others[i]
		if !isOther {
			mentioned = 4
		}
		ids, now[id] = append(ids, id), []*sideSum{{ok: 2, known: mentioned}, {ok: 4}}
		before[id] = []*sideSum{{ok: 6, known: 3}}
		if !isOther && len(want) < 20*len("q00 ") {
			want += id + " "
		}
	}
	got := ""
	for _, m := range newRateChange(ids, now, before, func(s *sideSum) split { return split{s.known, s.ok} }, NoAnswers).Moved {
		got += m.Question + " "
	}
	storetest.Equal(t, want, got)
}

// TestFalseAlarms simulates scheduled runs, each compared with the four runs before it, and counts the comparisons that
// are clear at 99 % and at least 10 points: of runs without a change at most 1 %. The long form has more sizes.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	const quantile, minChange = 2.5758293035489004, 1000
	runs, sizes := 2000, [][2]int{{20, 3}} // questions, answers to each
	if storetest.Long() {
		runs, sizes = 10_000, [][2]int{{5, 6}, {20, 3}, {50, 6}}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range sizes {
		for _, spread := range []float64{0, 0.25} { // of the rates of questions
			for _, rate := range []float64{0.1, 0.3, 0.5, 0.8} {
				opened := 0
				for range runs {
					c := simulate(random, size[0], size[1], rate, spread)
					if c.Beyond(quantile) && max(c.Difference.Value, -c.Difference.Value) >= minChange {
						opened++
					}
				}
				if opened > runs/100 {
					t.Errorf("%d questions × %d answers, rate %.1f ± %.2f: %d of %d runs without a change open an alert",
						size[0], size[1], rate, spread, opened, runs)
				}
			}
		}
	}
}

// simulate compares a run with four earlier ones. Each question has its own rate, which is the same in all runs.
func simulate(random *rand.Rand, questions, answers int, rate, spread float64) RateChange {
	var ids []string
	now, before := make(map[string][]*sideSum), make(map[string][]*sideSum)
	for i := range questions {
		id, p := fmt.Sprint(i), min(1, max(0, rate+spread*(2*random.Float64()-1)))
		draw := func(n int) []*sideSum {
			s := &sideSum{ok: int32(n), brands: make([]brandSum, 1)}
			for range n {
				if random.Float64() < p {
					s.brands[0].mentioned++
				}
			}
			return []*sideSum{s}
		}
		ids, before[id], now[id] = append(ids, id), draw(4*answers), draw(answers)
	}
	return newRateChange(ids, now, before, func(s *sideSum) split { return split{s.brands[0].mentioned, s.ok} }, NoAnswers)
}
