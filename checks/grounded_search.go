package checks

import (
	"context"
	"fmt"
	"strings"

	"aiv/runs"
)

// GroundedSearch refuses grounded runs by models that do not support grounded search, and by models whose provider still
// lacks something that its use depends on. Nothing is assumed to be met; the refusal names what is not.
type GroundedSearch struct{}

// Name implements Check.
func (GroundedSearch) Name() string { return "grounded_search" }

// Check implements Check.
func (GroundedSearch) Check(_ context.Context, p *Proposal) (faults []runs.Fault, err error) {
	if p.MeasurementType != "grounded" {
		return nil, nil
	}
	for i, id := range p.ModelIDs {
		pointer := fmt.Sprintf("/model_ids/%d", i)
		switch m := p.Catalog.Model(id); {
		case m == nil: // for the check before to say
		case !m.GroundedSearch:
			faults = append(faults, runs.Fault{
				Code: "grounded_search_not_supported", Title: "A model does not support grounded search", Pointer: pointer,
				Detail: "the model does not support grounded search",
			})
		case len(m.Unmet) > 0:
			faults = append(faults, runs.Fault{
				Code: "grounded_search_unavailable", Title: "Grounded search is not available yet", Pointer: pointer,
				Detail: fmt.Sprintf("provider %s is not ready; unmet: %s", m.Provider, strings.Join(m.Unmet, ", ")),
			})
		}
	}
	return faults, nil
}
