package visibility

import (
	"fmt"
	"testing"
)

// What the expected results of reads are made with. The tests below have the tables of the methodology.
type Split = split

var NewRate, NewShare = newRate, newShare

func NewSplit(count, of int) Split { return split{int32(count), int32(of)} }

func TestRatesHaveWilsonIntervalsOnTheEffectiveSize(t *testing.T) {
	for _, tt := range []struct {
		questions []split
		want      string // value, effective size, limits, whether the sample is low
	}{
		{[]split{{5, 12}}, "0.4167 12 0.1933 0.6805 true"},
		{[]split{{5, 5}, {5, 5}, {0, 5}, {0, 5}}, "0.5 3 0.1253 0.8747 true"},
		{[]split{{2, 4}, {2, 4}, {2, 4}}, "0.5 12 0.2538 0.7462 true"},
		{[]split{{3, 4}, {1, 6}}, "0.4 3.0612 0.086 0.8253 true"},
		{[]split{{0, 5}}, "0 5 0 0.4345 true"},
		{[]split{{0, 30}}, "0 30 0 0.1135 false"},
		{[]split{{10, 10}}, "1 10 0.7225 1 false"},
		{[]split{{2, 199}}, "0.0101 199 0.0028 0.0359 false"},
		{[]split{{0, 0}, {4, 5}, {1, 5}}, "0.5 2.7778 0.1191 0.8809 true"},
	} {
		r := newRate(tt.questions, "no_answers")
		if got := fmt.Sprintln(r.Value, r.Effective, r.Low, r.High, r.LowSample); got != tt.want+"\n" || r.Reason != "" {
			t.Errorf("%v: got %s (%s), want %s", tt.questions, got, r.Reason, tt.want)
		}
	}
}

func TestDifferencesHaveNewcombeIntervals(t *testing.T) {
	for _, tt := range []struct {
		current, baseline split
		want              string
	}{
		{split{22, 40}, split{10, 40}, "0.3 0.0853 0.4792 up"},
		{split{1, 100}, split{2, 100}, "-0.01 -0.0607 0.0368 no_clear_change"},
		{split{0, 100}, split{60, 100}, "-0.6 -0.6906 -0.4953 down"},
		{split{17, 20}, split{8, 20}, "0.45 0.1503 0.6558 up"}, // the example of GET /v1/metrics/compare
		{split{4, 20}, split{3, 20}, "0.05 -0.1919 0.2871 no_clear_change"},
	} {
		current, baseline := newRate([]split{tt.current}, ""), newRate([]split{tt.baseline}, "")
		d, verdict := difference(&current, &baseline)
		if got := fmt.Sprintln(d.Value, d.Low, d.High, verdict); got != tt.want+"\n" {
			t.Errorf("%v against %v: got %s, want %s", tt.current, tt.baseline, got, tt.want)
		}
	}
}

func TestNumbersAreRoundedOnceHalfAwayFromZero(t *testing.T) {
	for _, tt := range []struct {
		a, b int64
		want string
	}{
		{1, 32, "0.0313"}, {-1, 32, "-0.0313"}, {0, 7, "0"}, {5, 1, "5"}, {1, 20000, "0.0001"}, {1, 20001, "0"},
		{14, 10, "1.4"}, {2, 3, "0.6667"}, {163, 800, "0.2038"}, // 163/800 × 10,000 is less than 2037.5 in floating point
	} {
		if got := Ratio(tt.a, tt.b).String(); got != tt.want {
			t.Errorf("%d / %d is %s, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}
