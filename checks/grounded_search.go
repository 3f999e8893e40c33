package checks

import (
	"context"
	"fmt"
	"strings"

	"aiv/catalog"
	"aiv/runs"
)

// GroundedSearch requires that every provider can serve the run: each of its dependencies is recorded as met, and for
// grounded runs each model supports grounded search.
var GroundedSearch = Check{
	Name: "grounded_search",
	Doc:  "Each model's provider must have all dependencies met, and for grounded runs each model must support grounded search.",
	Run:  groundedSearch,
}

// groundedSearch reports each model that cannot be used. The code for a provider that is not ready depends on whether
// the run is grounded.
func groundedSearch(_ context.Context, p *Proposal) (faults []runs.Fault, err error) {
	grounded := p.MeasurementType == catalog.Grounded
	for i, id := range p.ModelIDs {
		m := p.Catalog.Model(id)
		if m == nil {
			continue // model_support rejects it
		}
		pointer := fmt.Sprintf("/model_ids/%d", i)
		if grounded && !m.GroundedSearch {
			faults = append(faults, runs.Fault{
				Code: "grounded_search_not_supported", Title: "A model does not support grounded search", Pointer: pointer,
				Detail: "the model does not support grounded search",
			})
		}
		if len(m.Unmet) > 0 {
			f := runs.Fault{
				Code: "provider_unavailable", Title: "A provider is not available yet", Pointer: pointer,
				Detail: fmt.Sprintf("provider %s is not ready; unmet: %s", m.Provider, strings.Join(m.Unmet, ", ")),
			}
			if grounded {
				f.Code, f.Title = "grounded_search_unavailable", "Grounded search is not available yet"
			}
			faults = append(faults, f)
		}
	}
	return faults, nil
}
