package checks

import (
	"context"
	"fmt"

	"aiv/runs"
)

// Methodology chooses the active methodology that covers the measurement type and holds the run to its bounds.
type Methodology struct{}

// Name implements Check.
func (Methodology) Name() string { return "methodology" }

// Check implements Check.
func (Methodology) Check(_ context.Context, p *Proposal) ([]runs.Fault, error) {
	m := p.Catalog.Methodology(p.MeasurementType)
	if m == nil {
		return []runs.Fault{{
			Code:    "unsupported_measurement_type",
			Title:   "No methodology covers the measurement type",
			Pointer: "/measurement_type",
			Detail:  "no active methodology covers this measurement type",
		}}, nil
	}
	if p.Repetitions > int64(m.MaxRepetitions) {
		return []runs.Fault{{
			Code:    "repetitions_out_of_bounds",
			Title:   "Too many repetitions",
			Pointer: "/repetitions",
			Detail:  fmt.Sprintf("must be an integer from 1 to %d (%s)", m.MaxRepetitions, m.Version),
		}}, nil
	}
	// Only repetitions within their bound can be multiplied without overflow.
	if jobs := p.TotalJobs(); jobs > int64(m.MaxJobs) {
		return []runs.Fault{{
			Code:   "too_many_jobs",
			Title:  "The run would have too many jobs",
			Detail: fmt.Sprintf("Models × questions × repetitions would make %d jobs; a run has at most %d (%s).", jobs, m.MaxJobs, m.Version),
		}}, nil
	}
	p.Methodology = m
	return nil, nil
}
