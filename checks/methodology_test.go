package checks_test

import (
	"fmt"
	"math"
	"testing"

	"aiv/checks"
	"aiv/runs"
)

func TestMethodology(t *testing.T) {
	sized := func(models, questions int, repetitions int64) func(*checks.Proposal) {
		return func(p *checks.Proposal) {
			p.ModelIDs, p.QuestionIDs, p.Repetitions = make([]string, models), make([]string, questions), repetitions
		}
	}
	repetitions := []runs.Fault{{
		Code: "repetitions_out_of_bounds", Title: "Too many repetitions", Pointer: "/repetitions", Detail: "must be an integer from 1 to 20 (AIVM-1.0)",
	}}
	jobs := func(n int) []runs.Fault {
		return []runs.Fault{{
			Code: "too_many_jobs", Title: "The run would have too many jobs",
			Detail: fmt.Sprintf("Models × questions × repetitions would make %d jobs; a run has at most 100 (AIVM-1.0).", n),
		}}
	}
	checkTable(t, checks.Methodology{}, []row{
		{"the smallest", sized(1, 1, 1), nil},
		{"as many repetitions as may be", sized(1, 1, 20), nil},
		{"one more", sized(1, 1, 21), repetitions},
		{"so many that their product would overflow", sized(50, 500, math.MaxInt64), repetitions},
		{"as many jobs as may be", sized(5, 1, 20), nil},
		{"one more", sized(1, 101, 1), jobs(101)},
		{"many more", sized(50, 500, 20), jobs(500_000)},
		{"a measurement type that nobody covers", func(p *checks.Proposal) { p.MeasurementType = "Grounded" }, []runs.Fault{{
			Code: "unsupported_measurement_type", Title: "No methodology covers the measurement type", Pointer: "/measurement_type",
			Detail: "no active methodology covers this measurement type",
		}}},
		{"another methodology, other bounds", func(p *checks.Proposal) { p.MeasurementType, p.Repetitions = "plain", 2 }, []runs.Fault{{
			Code: "repetitions_out_of_bounds", Title: "Too many repetitions", Pointer: "/repetitions", Detail: "must be an integer from 1 to 1 (AIVM-2.0)",
		}}},
	})
}

// TestMethodologyIsSet: what the check chooses is what the run is measured by; what it refuses has none.
func TestMethodologyIsSet(t *testing.T) {
	for measurementType, want := range map[string]string{"grounded": "AIVM-1.0", "plain": "AIVM-2.0", "none": ""} {
		p := propose(func(p *checks.Proposal) { p.MeasurementType = measurementType })
		if _, err := (checks.Methodology{}).Check(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		got := ""
		if p.Methodology != nil {
			got = p.Methodology.Version
		}
		if got != want {
			t.Errorf("%s: got methodology %q, want %q", measurementType, got, want)
		}
	}
}
