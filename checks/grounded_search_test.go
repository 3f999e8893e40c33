package checks_test

import (
	"testing"

	"aiv/checks"
)

func TestGroundedSearch(t *testing.T) {
	models := func(measurementType string, ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.MeasurementType, p.ModelIDs = measurementType, ids }
	}
	const unsupported, unmet = ": the model does not support grounded search", ": provider acme is not ready; unmet: "
	checkTable(t, checks.GroundedSearch, []row{
		{"all dependencies met", models("grounded", "everywhere", "italy"), nil},
		{"both faults of one model", models("grounded", "offline and pending"), []string{
			"grounded_search_not_supported /model_ids/0" + unsupported,
			"grounded_search_unavailable /model_ids/0" + unmet + "secret",
		}},
		{"faults of several models, with the names of dependencies", models("grounded", "pending", "everywhere", "offline"), []string{
			"grounded_search_unavailable /model_ids/0" + unmet + "contract, legal_approval",
			"grounded_search_not_supported /model_ids/2" + unsupported,
		}},
		{"another measurement type needs only a ready provider", models("plain", "offline", "pending", "offline and pending"), []string{
			"provider_unavailable /model_ids/1" + unmet + "contract, legal_approval",
			"provider_unavailable /model_ids/2" + unmet + "secret",
		}},
		{"unknown models are left to model_support", models("grounded", "none"), nil},
	})
}
