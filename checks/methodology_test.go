package checks_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"aiv/checks"
	"aiv/runs"
)

func TestMethodologyIsChecked(t *testing.T) {
	sized := func(models, questions int, repetitions int64) func(*checks.Proposal) {
		return func(p *checks.Proposal) {
			p.ModelIDs, p.QuestionIDs, p.Repetitions = make([]string, models), make([]string, questions), repetitions
		}
	}
	repetitions := func(most int, version string) runs.Fault {
		return runs.Fault{Code: "repetitions_out_of_bounds", Title: "Too many repetitions", Pointer: "/repetitions",
			Detail: fmt.Sprintf("must be an integer from 1 to %d (%s)", most, version)}
	}
	jobs := func(most int, version string) runs.Fault {
		return runs.Fault{Code: "too_many_jobs", Title: "The run would have too many jobs", Detail: fmt.Sprintf(
			"The run would have more than %d jobs (models × questions × repetitions), the maximum of %s.", most, version)}
	}
	tooMany, tooLarge := []runs.Fault{repetitions(20, "AIVM-1.0")}, []runs.Fault{jobs(100, "AIVM-1.0")}
	both := slices.Concat(tooMany, tooLarge)
	checkTable(t, checks.Methodology, []row{
		{"the smallest run", sized(1, 1, 1), nil},
		{"the most repetitions", sized(1, 1, 20), nil},
		{"one repetition too many", sized(1, 1, 21), tooMany},
		{"as many repetitions as jobs", sized(1, 1, 100), tooMany},
		{"too many repetitions and jobs", sized(1, 1, 101), both},
		{"repetitions whose product would overflow", sized(50, 500, math.MaxInt64), both},
		{"the most jobs", sized(5, 1, 20), nil},
		{"one job too many", sized(1, 101, 1), tooLarge},
		{"the largest request", sized(50, 500, 20), tooLarge},
		{"a measurement type without a methodology", func(p *checks.Proposal) { p.MeasurementType = "Grounded" }, []runs.Fault{{
			Code: "unsupported_measurement_type", Title: "No methodology covers the measurement type", Pointer: "/measurement_type",
			Detail: "no active methodology covers this measurement type",
		}}},
		{"the bounds of another methodology", func(p *checks.Proposal) { p.MeasurementType, p.Repetitions = "plain", 2 },
			[]runs.Fault{repetitions(1, "AIVM-2.0"), jobs(1, "AIVM-2.0")}},
	})
}
