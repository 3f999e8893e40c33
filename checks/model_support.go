package checks

import (
	"context"
	"fmt"
	"strings"

	"aiv/catalog"
	"aiv/runs"
)

// ModelSupport requires models that exist, are active and cover the run, and questions that the account can use.
// Another account's question is reported like one that does not exist.
var ModelSupport = Check{
	Name: "model_support",
	Doc:  "Each model must be active and cover the measurement type, country and language; each question must be active.",
	Run:  modelSupport,
}

// modelSupport reports the faults of models first, then of questions, each at its index in the proposal.
func modelSupport(ctx context.Context, p *Proposal) (faults []runs.Fault, err error) {
	for i, id := range p.ModelIDs {
		pointer := fmt.Sprintf("/model_ids/%d", i)
		m := p.Catalog.Model(id)
		if m == nil {
			faults = append(faults, runs.Fault{
				Code: "unknown_model", Title: "A model is not in the catalog", Pointer: pointer, Detail: "there is no such model",
			})
			continue // what it supports is not known
		}
		if missing := unsupported(p, m); len(missing) > 0 {
			faults = append(faults, runs.Fault{
				Code: "model_not_supported", Title: "A model does not support the run", Pointer: pointer,
				Detail: "the model " + strings.Join(missing, ", and "),
			})
		}
	}
	status, err := p.Catalog.QuestionStatus(ctx, p.Orderer.AccountID, p.QuestionIDs)
	if err != nil {
		return nil, err
	}
	// "" is the status of a question that the account cannot use.
	for i, s := range status {
		pointer := fmt.Sprintf("/question_ids/%d", i)
		switch s {
		case "":
			faults = append(faults, runs.Fault{
				Code: "unknown_question", Title: "A question is not in the catalog", Pointer: pointer, Detail: "there is no such question",
			})
		case catalog.Archived:
			faults = append(faults, runs.Fault{
				Code: "question_archived", Title: "A question is archived", Pointer: pointer, Detail: "the question is archived",
			})
		}
	}
	return faults, nil
}

// unsupported returns a phrase for each requirement of the run that the model does not meet.
func unsupported(p *Proposal, m *catalog.Model) (phrases []string) {
	if m.Status != catalog.Active {
		phrases = append(phrases, "is "+m.Status)
	}
	if !m.Measures(p.MeasurementType) {
		phrases = append(phrases, "does not cover the measurement type "+p.MeasurementType)
	}
	country, language := m.Covers(p.Country, p.Language)
	if !country {
		phrases = append(phrases, "does not cover the country "+p.Country)
	}
	if !language {
		phrases = append(phrases, "does not cover the language "+p.Language)
	}
	return phrases
}
