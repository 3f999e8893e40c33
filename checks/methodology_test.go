package checks_test

import (
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
	repetitions := []runs.Fault{{
		Code: "repetitions_out_of_bounds", Title: "Too many repetitions", Pointer: "/repetitions", Detail: "must be an integer from 1 to 20 (AIVM-1.0)",
	}}
	jobs := []runs.Fault{{
		Code: "too_many_jobs", Title: "The run would have too many jobs",
		Detail: "The run would have more than 100 jobs (models × questions × repetitions), the maximum of AIVM-1.0.",
	}}
	checkTable(t, checks.Methodology, []row{
		{"the smallest run", sized(1, 1, 1), nil},
		{"the most repetitions", sized(1, 1, 20), nil},
		{"one repetition too many", sized(1, 1, 21), repetitions},
		{"as many repetitions as jobs", sized(1, 1, 100), repetitions},
		{"too many repetitions and jobs", sized(1, 1, 101), slices.Concat(repetitions, jobs)},
		{"repetitions whose product would overflow", sized(50, 500, math.MaxInt64), slices.Concat(repetitions, jobs)},
		{"the most jobs", sized(5, 1, 20), nil},
		{"one job too many", sized(1, 101, 1), jobs},
		{"the largest request", sized(50, 500, 20), jobs},
		{"a measurement type without a methodology", func(p *checks.Proposal) { p.MeasurementType = "Grounded" }, []runs.Fault{{
			Code: "unsupported_measurement_type", Title: "No methodology covers the measurement type", Pointer: "/measurement_type",
			Detail: "no active methodology covers this measurement type",
		}}},
		{"the bounds of another methodology", func(p *checks.Proposal) { p.MeasurementType, p.Repetitions = "plain", 2 }, []runs.Fault{{
			Code: "repetitions_out_of_bounds", Title: "Too many repetitions", Pointer: "/repetitions", Detail: "must be an integer from 1 to 1 (AIVM-2.0)",
		}, {
			Code: "too_many_jobs", Title: "The run would have too many jobs",
			Detail: "The run would have more than 1 jobs (models × questions × repetitions), the maximum of AIVM-2.0.",
		}}},
	})
}
