package checks

import (
	"context"
	"fmt"
	"strings"

	"aiv/catalog"
	"aiv/runs"
)

// ModelSupport refuses models that do not exist, are not active or do not cover what is measured and where, and questions
// that the account does not have or that are archived. Another account's question is one that does not exist.
type ModelSupport struct{}

// Name implements Check.
func (ModelSupport) Name() string { return "model_support" }

// Check implements Check.
func (ModelSupport) Check(ctx context.Context, p *Proposal) (faults []runs.Fault, err error) {
	for i, id := range p.ModelIDs {
		pointer := fmt.Sprintf("/model_ids/%d", i)
		m := p.Catalog.Model(id)
		if m == nil {
			faults = append(faults, runs.Fault{
				Code: "unknown_model", Title: "A model is not in the catalog", Pointer: pointer, Detail: "there is no such model",
			})
			continue
		}
		if lacks := lacking(p, m); len(lacks) > 0 {
			faults = append(faults, runs.Fault{
				Code: "model_not_supported", Title: "A model does not support the run", Pointer: pointer,
				Detail: "the model " + strings.Join(lacks, ", and "),
			})
		}
	}
	status, err := p.Catalog.QuestionStatus(ctx, p.Credential.AccountID, p.QuestionIDs)
	if err != nil {
		return nil, err
	}
	for i, s := range status {
		pointer := fmt.Sprintf("/question_ids/%d", i)
		switch s {
		case "":
			faults = append(faults, runs.Fault{
				Code: "unknown_question", Title: "A question is not in the catalog", Pointer: pointer, Detail: "there is no such question",
			})
		case "archived":
			faults = append(faults, runs.Fault{
				Code: "question_archived", Title: "A question is archived", Pointer: pointer, Detail: "the question is archived",
			})
		}
	}
	return faults, nil
}

// lacking says in words what the model does not cover.
func lacking(p *Proposal, m *catalog.Model) (lacks []string) {
	if m.Status != "active" {
		lacks = append(lacks, "is "+m.Status)
	}
	if !m.Measures(p.MeasurementType) {
		lacks = append(lacks, "does not cover the measurement type "+p.MeasurementType)
	}
	country, language := m.Covers(p.Country, p.Language)
	if !country {
		lacks = append(lacks, "does not cover the country "+p.Country)
	}
	if !language {
		lacks = append(lacks, "does not cover the language "+p.Language)
	}
	return lacks
}
