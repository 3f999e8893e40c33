package visibility

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRatesHaveWilsonIntervalsOnTheEffectiveSize(t *testing.T) {
	one := func(count, of int32) []split { return []split{{count, of}} }
	tests := []struct {
		questions        []split
		value, effective string
		low, high        string
		lowSample        bool
	}{
		{one(5, 12), "0.4167", "12", "0.1933", "0.6805", true},
		{[]split{{5, 5}, {5, 5}, {0, 5}, {0, 5}}, "0.5", "3", "0.1253", "0.8747", true},
		{[]split{{2, 4}, {2, 4}, {2, 4}}, "0.5", "12", "0.2538", "0.7462", true},
		{[]split{{3, 4}, {1, 6}}, "0.4", "3.0612", "0.086", "0.8253", true},
		{one(0, 5), "0", "5", "0", "0.4345", true},
		{one(0, 30), "0", "30", "0", "0.1135", false},
		{one(10, 10), "1", "10", "0.7225", "1", false},
		{one(2, 199), "0.0101", "199", "0.0028", "0.0359", false},
		// The example of GET /v1/metrics: two questions, of which the first brand has the first three rows.
		{[]split{{0, 0}, {4, 5}, {1, 5}}, "0.5", "2.7778", "0.1191", "0.8809", true},
		{[]split{{2, 4}, {1, 4}}, "0.375", "8", "0.1368", "0.6943", true},
		{[]split{{3, 4}, {0, 1}}, "0.6", "4.1667", "0.2094", "0.8947", true},
		{[]split{{3, 5}, {3, 5}}, "0.6", "10", "0.3127", "0.8318", true},
		{[]split{{3, 4}, {2, 4}}, "0.625", "8", "0.3057", "0.8632", true},
		{[]split{{3, 3}, {2, 3}}, "0.8333", "5", "0.4033", "0.9737", true},
		// The example of GET /v1/metrics/compare.
		{one(17, 20), "0.85", "20", "0.6396", "0.9476", true},
		{one(8, 20), "0.4", "20", "0.2188", "0.6134", true},
	}
	for _, tt := range tests {
		r := newRate(tt.questions, "no_answers")
		got := []string{r.Value.String(), r.Effective.String(), r.Low.String(), r.High.String()}
		if diff := cmp.Diff([]string{tt.value, tt.effective, tt.low, tt.high}, got); diff != "" || r.LowSample != tt.lowSample {
			t.Errorf("%v: low_sample %v; value, effective, low, high (-want +got):\n%s", tt.questions, r.LowSample, diff)
		}
	}
	if r := newRate(nil, "no_answers"); r.Value != nil || r.Low != nil || r.Effective != nil || !r.LowSample || r.Reason != "no_answers" {
		t.Errorf("without answers: %+v", r)
	}
}

func TestDifferencesHaveNewcombeIntervals(t *testing.T) {
	tests := []struct {
		current, baseline split
		want              []string
	}{
		{split{22, 40}, split{10, 40}, []string{"0.3", "0.0853", "0.4792", Up}},
		{split{1, 100}, split{2, 100}, []string{"-0.01", "-0.0607", "0.0368", NoClearChange}},
		{split{0, 100}, split{60, 100}, []string{"-0.6", "-0.6906", "-0.4953", Down}},
		{split{17, 20}, split{8, 20}, []string{"0.45", "0.1503", "0.6558", Up}}, // the example of GET /v1/metrics/compare
		{split{4, 20}, split{3, 20}, []string{"0.05", "-0.1919", "0.2871", NoClearChange}},
	}
	for _, tt := range tests {
		current, baseline := newRate([]split{tt.current}, ""), newRate([]split{tt.baseline}, "")
		d, verdict := difference(&current, &baseline)
		if diff := cmp.Diff(tt.want, []string{d.Value.String(), d.Low.String(), d.High.String(), verdict}); diff != "" {
			t.Errorf("%v against %v (-want +got):\n%s", tt.current, tt.baseline, diff)
		}
	}
}

func TestNumbersAreRoundedOnceHalfAwayFromZero(t *testing.T) {
	for _, tt := range []struct {
		a, b int64
		want string
	}{{1, 32, "0.0313"}, {-1, 32, "-0.0313"}, {0, 7, "0"}, {5, 1, "5"}, {1, 20000, "0.0001"}, {1, 20001, "0"}, {14, 10, "1.4"}, {2, 3, "0.6667"}} {
		if got := ratio(tt.a, tt.b).String(); got != tt.want {
			t.Errorf("%d / %d is %s, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}
