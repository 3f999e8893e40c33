package checks

import (
	"context"
	"fmt"

	"aiv/auth"
	"aiv/runs"
)

// Entitlement refuses accounts whose plan lacks api_access, whatever the scopes of their credentials.
type Entitlement struct{}

// Name implements Check.
func (Entitlement) Name() string { return "entitlement" }

// Check implements Check.
func (Entitlement) Check(_ context.Context, p *Proposal) ([]runs.Fault, error) {
	plan := p.Credential.Plan
	if plan.Entitled(auth.APIAccess) {
		return nil, nil
	}
	return []runs.Fault{{
		Code:   "entitlement_required",
		Title:  "The plan lacks an entitlement",
		Detail: fmt.Sprintf("The plan %s does not include %s.", plan.Code, auth.APIAccess),
	}}, nil
}
