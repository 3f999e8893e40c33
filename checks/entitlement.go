package checks

import (
	"context"
	"fmt"

	"aiv/auth"
	"aiv/runs"
)

// Entitlement requires the plan feature api_access. Scopes of the credential do not replace it.
var Entitlement = Check{
	Name: "entitlement",
	Doc:  "The account's plan must include api_access.",
	Run:  entitlement,
}

// entitlement returns one fault, about the account and not about a member of the run. Its code is part of the API:
// reference/openapi.json describes each code.
func entitlement(_ context.Context, p *Proposal) ([]runs.Fault, error) {
	plan := p.Orderer.Plan
	if plan.Entitled(auth.APIAccess) {
		return nil, nil
	}
	return []runs.Fault{{
		Code:   "entitlement_required",
		Title:  "The plan lacks an entitlement",
		Detail: fmt.Sprintf("The plan %s does not include %s.", plan.Code, auth.APIAccess),
	}}, nil
}
