package checks_test

import (
	"testing"

	"aiv/checks"
)

func TestModelsNeedEntitlement(t *testing.T) {
	features := func(list ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.Orderer.Plan.Features = list }
	}
	required := []string{"entitlement_required: The plan pro does not include api_access."}
	checkTable(t, checks.Entitlement, []row{
		{"the feature among others", features("dashboard", "api_access"), nil},
		{"other features", features("dashboard", "api", "api_access_beta", "API_ACCESS"), required},
		{"nothing else is read", func(p *checks.Proposal) { p.Orderer.Plan.Features, p.Catalog = nil, nil }, required},
	})
}
