// Package checks decides whether a requested run may be created. Each check has a file and one reason to reject a run;
// Standard lists them in order.
//
// The package owns no table. Package runs calls a Registry as its Checker before it writes a run.
package checks

import (
	"context"
	"errors"
	"fmt"

	"aiv/catalog"
	"aiv/runs"
	"aiv/store"
)

// A Check examines one aspect of a proposal.
type Check struct {
	// Name identifies the check in problem documents and names its golden file, rejected_NAME.txt.
	Name string
	// Doc states in one sentence what the check requires of a run.
	Doc string
	// Run returns every fault of the proposal that the check covers. An error means that the check could not decide.
	Run func(ctx context.Context, p *Proposal) ([]runs.Fault, error)
}

// A Proposal is a requested run with what it is checked against. Checks must not modify it.
type Proposal struct {
	*runs.Proposal
	Catalog     Catalog
	Methodology *catalog.Methodology // the active one that covers the measurement type; nil if none does
}

// Catalog is the part of a catalog that checks use. *catalog.Snapshot implements it; tests use a fake.
type Catalog interface {
	Model(id string) *catalog.Model
	QuestionStatus(ctx context.Context, account store.ID, ids []string) ([]string, error)
}

// Standard returns the checks of the program in the order in which they run. The first check that finds faults decides
// the response.
func Standard() []Check {
	return []Check{
		Entitlement,    // first: an account without API access learns nothing about the catalog
		Methodology,    // before the catalog is searched: it bounds the size of the run
		ModelSupport,   // before the providers: the models must exist
		GroundedSearch, // last: providers become ready without any change by the client
	}
}

// A Registry runs checks in order. It implements runs.Checker.
type Registry struct {
	Checks  []Check // in the order in which they run
	Catalog *catalog.Catalog
}

// Check selects the methodology of the proposal and runs the checks. It returns the methodology's version, or a
// *runs.Refusal with all faults of the first check that found any.
func (r *Registry) Check(ctx context.Context, proposal *runs.Proposal) (methodology string, err error) {
	snapshot, err := r.Catalog.At(ctx, proposal.CatalogRevision)
	if err != nil {
		return "", fmt.Errorf("reading the catalog: %w", err)
	}
	// The methodology may be nil: only the checks after Methodology can rely on it.
	p := &Proposal{Proposal: proposal, Catalog: snapshot, Methodology: snapshot.Methodology(proposal.MeasurementType)}
	for _, c := range r.Checks {
		faults, err := c.Run(ctx, p)
		if err != nil {
			return "", fmt.Errorf("check %s: %w", c.Name, err)
		}
		if len(faults) > 0 {
			return "", &runs.Refusal{Check: c.Name, Faults: faults}
		}
	}
	// The check Methodology has rejected such a proposal, unless the Registry lacks it.
	if p.Methodology == nil {
		return "", errors.New("no check rejected a measurement type without a methodology")
	}
	return p.Methodology.Version, nil
}
