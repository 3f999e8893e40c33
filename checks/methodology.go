package checks

import (
	"context"
	"fmt"

	"aiv/runs"
)

// Methodology requires an active methodology for the measurement type, and a run within its bounds.
var Methodology = Check{
	Name: "methodology",
	Doc:  "An active methodology must cover the measurement type; it limits the repetitions and the jobs of a run.",
	Run:  methodology,
}

// methodology reports both bounds if a run exceeds both. Without a methodology there is nothing else to check.
func methodology(_ context.Context, p *Proposal) ([]runs.Fault, error) {
	m := p.Methodology
	if m == nil {
		return []runs.Fault{{
			Code:    "unsupported_measurement_type",
			Title:   "No methodology covers the measurement type",
			Pointer: "/measurement_type",
			Detail:  "no active methodology covers this measurement type",
		}}, nil
	}
	var faults []runs.Fault
	if p.Repetitions > int64(m.MaxRepetitions) {
		faults = append(faults, runs.Fault{
			Code:    "repetitions_out_of_bounds",
			Title:   "Too many repetitions",
			Pointer: "/repetitions",
			Detail:  fmt.Sprintf("must be an integer from 1 to %d (%s)", m.MaxRepetitions, m.Version),
		})
	}
	// The gateway bounds models times questions to 25,000, so only the repetitions could make the product overflow.
	most := int64(m.MaxJobs)
	if int64(len(p.ModelIDs)*len(p.QuestionIDs))*min(p.Repetitions, most+1) > most { // more repetitions could overflow
		faults = append(faults, runs.Fault{
			Code:   "too_many_jobs",
			Title:  "The run would have too many jobs",
			Detail: fmt.Sprintf("The run would have more than %d jobs (models × questions × repetitions), the maximum of %s.", most, m.Version),
		})
	}
	return faults, nil
}
