package telemetry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpositionFormat(t *testing.T) {
	t.Parallel()
	var e Exposition
	e.Family("one", "gauge", "A gauge.")
	e.Sample(1.5)
	e.Sample(2, "a", "\\\"\n", "b", "")
	e.Family("other", "histogram", "A histogram.")
	e.Histogram(Histogram{Bounds: []float64{0.5, 1}, Counts: []uint64{1, 2, 3}, Sum: 9}, "a", "x")
	const want = `# HELP one A gauge.
# TYPE one gauge
one 1.5
one{a="\\\"\n",b=""} 2
# HELP other A histogram.
# TYPE other histogram
other_bucket{a="x",le="0.5"} 1
other_bucket{a="x",le="1"} 3
other_bucket{a="x",le="+Inf"} 6
other_sum{a="x"} 9
other_count{a="x"} 6
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
