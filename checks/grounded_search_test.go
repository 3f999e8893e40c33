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
	notReady := func(i int, unmet string) runs.Fault {
		return runs.Fault{
			Code: "provider_unavailable", Title: "A provider is not available yet", Pointer: fmt.Sprintf("/model_ids/%d", i),
			Detail: "provider acme is not ready; unmet: " + unmet,
		}
	}
	checkTable(t, checks.GroundedSearch, []row{
		{"all dependencies met", models("grounded", "everywhere", "italy"), nil},
		{"grounded search not supported", models("grounded", "everywhere", "offline"), []runs.Fault{unsupported(1)}},
		{"unmet dependencies are named", models("grounded", "pending"), []runs.Fault{unavailable(0, "contract, legal_approval")}},
		{"both faults of one model", models("grounded", "offline and pending"), []runs.Fault{unsupported(0), unavailable(0, "secret")}},
		{"faults of several models", models("grounded", "pending", "everywhere", "offline"),
			[]runs.Fault{unavailable(0, "contract, legal_approval"), unsupported(2)}},
		{"another measurement type needs no grounded search", models("plain", "offline"), nil},
		{"another measurement type needs a ready provider", models("plain", "offline", "pending", "offline and pending"),
			[]runs.Fault{notReady(1, "contract, legal_approval"), notReady(2, "secret")}},
		{"unknown models are left to model_support", models("grounded", "none"), nil},
	})
}
