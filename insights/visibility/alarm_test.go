package visibility

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"aiv/store/storetest"
)

// A size is that of a simulated run.
type size struct{ questions, answers int }

// TestFalseAlarms simulates scheduled runs, each compared with the four runs before it, and counts the comparisons that
// are clear at 99 % and at least 10 points: of runs without a change at most 1 %. The long form has more sizes, and
// reports the power for drops.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	const quantile, minChange = 2.5758293035489004, 1000
	runs, drops, sizes := 2000, []float64(nil), []size{{20, 3}}
	if storetest.Long() {
		runs, drops, sizes = 10_000, []float64{0.1, 0.2, 0.4}, []size{{5, 6}, {20, 3}, {50, 6}}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, size := range sizes {
		for _, spread := range []float64{0, 0.25} { // of the rates of questions
			for _, rate := range []float64{0.1, 0.3, 0.5, 0.8} {
				clear95, clear99, opened := 0, 0, 0
				for range runs {
					c := simulate(random, size.questions, size.answers, rate, spread, 0)
					if c.Verdict == Up || c.Verdict == Down {
						clear95++
						if c.Beyond(quantile) {
							clear99++
							if max(c.Difference.Value, -c.Difference.Value) >= minChange {
								opened++
							}
						}
					}
				}
				t.Logf("%2d questions × %d answers, rate %.1f ± %.2f: %.2f %% clear at 95 %%, %.2f %% at 99 %%, %.2f %% open an alert", size.questions, size.answers,
					rate, spread, percentage(clear95, runs), percentage(clear99, runs), percentage(opened, runs))
				if opened > runs/100 {
					t.Errorf("%d of %d runs without a change open an alert", opened, runs)
				}
			}
			power := ""
			for _, drop := range drops {
				found := 0
				for range runs {
					c := simulate(random, size.questions, size.answers, 0.5, spread, drop)
					if c.Verdict == Down && c.Beyond(quantile) && -c.Difference.Value >= minChange {
						found++
					}
				}
				power += fmt.Sprintf(" %.0f points: %.1f %%", 100*drop, percentage(found, runs))
			}
			if power != "" {
				t.Logf("%2d questions × %d answers, rate 0.5 ± %.2f, power for drops of%s", size.questions, size.answers, spread, power)
			}
		}
	}
}

func percentage(n, of int) float64 { return 100 * float64(n) / float64(of) }

// simulate compares a run with four earlier ones. Each question has its own rate, which is the same in all runs but for
// the drop.
func simulate(random *rand.Rand, questions, answers int, rate, spread, drop float64) RateChange {
	var ids []string
	now, before := make(map[string][]*sideSum), make(map[string][]*sideSum)
	draw := func(n int, p float64) *sideSum {
		s := &sideSum{ok: int32(n), known: int32(n), brands: make([]brandSum, 1)}
		for range n {
			if random.Float64() < p {
				s.brands[0].mentioned++
			}
		}
		return s
	}
	for i := range questions {
		id := fmt.Sprint(i)
		ids = append(ids, id)
		p := math.Min(1, math.Max(0, rate+spread*(2*random.Float64()-1)))
		before[id] = []*sideSum{draw(4*answers, p)}
		now[id] = []*sideSum{draw(answers, math.Max(0, p-drop))}
	}
	return newRateChange(ids, now, before, func(s *sideSum) split { return split{s.brands[0].mentioned, s.ok} }, NoAnswers)
}
