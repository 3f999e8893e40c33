package checks_test

import (
	"math"
	"testing"

	"aiv/catalog"
	"aiv/checks"
)

func TestMethodologyIsChecked(t *testing.T) {
	sized := func(models, questions int, repetitions int64) func(*checks.Proposal) {
		return func(p *checks.Proposal) {
			p.ModelIDs, p.QuestionIDs, p.Repetitions = make([]string, models), make([]string, questions), repetitions
		}
	}
	const repetitions = "repetitions_out_of_bounds /repetitions: must be an integer from 1 to 20 (AIVM-1.0)"
	const jobs = "too_many_jobs: The run would have more than 100 jobs (models × questions × repetitions), the maximum of AIVM-1.0."
	checkTable(t, checks.Methodology, []row{
		{"the smallest run", sized(1, 1, 1), nil},
		{"one repetition too many", sized(1, 1, 21), []string{repetitions}},
		{"repetitions whose product would overflow", sized(50, 500, math.MaxInt64), []string{repetitions, jobs}},
		{"the most jobs", sized(5, 1, 20), nil},
		{"one job too many", sized(1, 101, 1), []string{jobs}},
		{"a measurement type without a methodology", func(p *checks.Proposal) { p.Methodology = nil },
			[]string{"unsupported_measurement_type /measurement_type: no active methodology covers this measurement type"}},
		{"the bounds of another methodology", func(p *checks.Proposal) {
			p.Methodology, p.Repetitions = &catalog.Methodology{Version: "AIVM-2.0", MaxRepetitions: 1, MaxJobs: 1}, 2
		}, []string{"repetitions_out_of_bounds /repetitions: must be an integer from 1 to 1 (AIVM-2.0)",
			"too_many_jobs: The run would have more than 1 jobs (models × questions × repetitions), the maximum of AIVM-2.0."}},
	})
}
