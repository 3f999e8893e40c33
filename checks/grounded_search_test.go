package checks_test

import (
	"fmt"
	"testing"

	"aiv/checks"
	"aiv/runs"
)

func TestGroundedSearch(t *testing.T) {
	models := func(measurementType string, ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.MeasurementType, p.ModelIDs = measurementType, ids }
	}
	unsupported := func(i int) runs.Fault {
		return runs.Fault{
			Code: "grounded_search_not_supported", Title: "A model does not support grounded search", Pointer: fmt.Sprintf("/model_ids/%d", i),
			Detail: "the model does not support grounded search",
		}
	}
	unavailable := func(i int, unmet string) runs.Fault {
		return runs.Fault{
			Code: "grounded_search_unavailable", Title: "Grounded search is not available yet", Pointer: fmt.Sprintf("/model_ids/%d", i),
			Detail: "provider acme is not ready; unmet: " + unmet,
		}
	}
	checkTable(t, checks.GroundedSearch{}, []row{
		{"all is met", models("grounded", "everywhere", "italy"), nil},
		{"not supported", models("grounded", "everywhere", "offline"), []runs.Fault{unsupported(1)}},
		{"what is unmet is named", models("grounded", "pending"), []runs.Fault{unavailable(0, "contract, legal_approval")}},
		{"not supported comes before unmet", models("grounded", "offline and pending"), []runs.Fault{unsupported(0)}},
		{"every fault", models("grounded", "pending", "everywhere", "offline"),
			[]runs.Fault{unavailable(0, "contract, legal_approval"), unsupported(2)}},
		{"other measurement types do not search", models("plain", "offline", "pending"), nil},
		{"what does not exist is for another check to say", models("grounded", "none"), nil},
	})
}
