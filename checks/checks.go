// Package checks holds the reasons to refuse a run, each in a file of its own, in the order of Standard.
//
// It owns no table. Package runs asks a Registry (its Admission) before it writes anything. To add a check: write a type
// with Name and Check in a new file, and give it its line in Standard.
package checks

import (
	"context"
	"fmt"

	"aiv/catalog"
	"aiv/runs"
	"aiv/store"
)

// A Check looks at one aspect of a proposal. It returns every fault that it finds itself, or none; an error means that
// it could not tell.
type Check interface {
	Name() string
	Check(ctx context.Context, p *Proposal) ([]runs.Fault, error)
}

// A Proposal is what the checks look at: what the client asks for, the catalog that it is judged by, and what earlier
// checks have found out.
type Proposal struct {
	*runs.Proposal
	Catalog     Catalog
	Methodology *catalog.Methodology // set by the methodology check
}

// Catalog is what the checks ask of it. *catalog.Snapshot is one.
type Catalog interface {
	Model(id string) *catalog.Model
	Methodology(measurementType string) *catalog.Methodology
	QuestionStatus(ctx context.Context, account store.ID, ids []string) ([]string, error)
}

// Standard is the pipeline, in order.
func Standard() []Check {
	return []Check{
		Entitlement{},    // first: who may not create runs learns nothing of the catalog
		Methodology{},    // bounds the size of the run, so that what follows looks at no more than may be asked
		ModelSupport{},   // every id must stand for something before it can be asked what it supports
		GroundedSearch{}, // last: it depends on what providers have, which changes without the client's doing
	}
}

// Registry runs checks in order. It is the runs.Admission of the program.
type Registry struct {
	Checks  []Check
	Catalog *catalog.Catalog
}

// Admit asks each check in turn. The first that finds faults refuses.
func (r *Registry) Admit(ctx context.Context, p *runs.Proposal) (methodology string, err error) {
	snapshot, err := r.Catalog.At(ctx, p.CatalogRevision)
	if err != nil {
		return "", fmt.Errorf("reading the catalog: %w", err)
	}
	q := &Proposal{Proposal: p, Catalog: snapshot}
	for _, c := range r.Checks {
		faults, err := c.Check(ctx, q)
		if err != nil {
			return "", fmt.Errorf("check %s: %w", c.Name(), err)
		}
		if len(faults) > 0 {
			return "", &runs.Refusal{Check: c.Name(), Faults: faults}
		}
	}
	if q.Methodology == nil {
		return "", fmt.Errorf("no check has chosen a methodology")
	}
	return q.Methodology.Version, nil
}
