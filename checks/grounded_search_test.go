package checks_test

import (
	"testing"

	"aiv/checks"
	"aiv/runs"
)

func TestGroundedSearch(t *testing.T) {
	models := func(measurementType string, ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.MeasurementType, p.ModelIDs = measurementType, ids }
	}
	unsupported := func(i int) runs.Fault {
		title := "A model does not support grounded search"
		return at("model_ids", "grounded_search_not_supported", title)(i, "the model does not support grounded search")
	}
	unavailable := at("model_ids", "grounded_search_unavailable", "Grounded search is not available yet")
	notReady := at("model_ids", "provider_unavailable", "A provider is not available yet")
	const unmet = "provider acme is not ready; unmet: "
	checkTable(t, checks.GroundedSearch, []row{
		{"all dependencies met", models("grounded", "everywhere", "italy"), nil},
		{"both faults of one model", models("grounded", "offline and pending"),
			[]runs.Fault{unsupported(0), unavailable(0, unmet+"secret")}},
		{"faults of several models, with the names of dependencies", models("grounded", "pending", "everywhere", "offline"),
			[]runs.Fault{unavailable(0, unmet+"contract, legal_approval"), unsupported(2)}},
		{"another measurement type needs only a ready provider", models("plain", "offline", "pending", "offline and pending"),
			[]runs.Fault{notReady(1, unmet+"contract, legal_approval"), notReady(2, unmet+"secret")}},
		{"unknown models are left to model_support", models("grounded", "none"), nil},
	})
}
