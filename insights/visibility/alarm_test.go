package visibility

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aiv/store/storetest"
)

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
