package checks_test

import (
	"errors"
	"fmt"
	"testing"

	"aiv/checks"
	"aiv/runs"
)

func TestModelSupport(t *testing.T) {
	models := func(ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.ModelIDs = ids }
	}
	questions := func(ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.QuestionIDs = ids }
	}
	where := func(country, language string, ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.Country, p.Language, p.ModelIDs = country, language, ids }
	}
	unsupported := func(i int, detail string) runs.Fault {
		return runs.Fault{
			Code: "model_not_supported", Title: "A model does not support the run", Pointer: fmt.Sprintf("/model_ids/%d", i), Detail: "the model " + detail,
		}
	}
	unknown := func(i int) runs.Fault {
		return runs.Fault{
			Code: "unknown_model", Title: "A model is not in the catalog", Pointer: fmt.Sprintf("/model_ids/%d", i), Detail: "there is no such model",
		}
	}
	noQuestion := func(i int) runs.Fault {
		return runs.Fault{
			Code: "unknown_question", Title: "A question is not in the catalog", Pointer: fmt.Sprintf("/question_ids/%d", i), Detail: "there is no such question",
		}
	}
	archived := func(i int) runs.Fault {
		return runs.Fault{
			Code: "question_archived", Title: "A question is archived", Pointer: fmt.Sprintf("/question_ids/%d", i), Detail: "the question is archived",
		}
	}
	checkTable(t, checks.ModelSupport, []row{
		{"supported models and questions", func(p *checks.Proposal) {
			p.ModelIDs, p.QuestionIDs = []string{"everywhere", "italy"}, []string{"shared", "ours"}
		}, nil},
		{"a region does not cover its language", where("IT", "it", "italy", "rome"), []runs.Fault{unsupported(1, "does not cover the language it")}},
		{"another country", where("SM", "it-IT", "italy", "rome"), []runs.Fault{unsupported(1, "does not cover the country SM")}},
		{"an empty list covers nothing", models("nowhere"), []runs.Fault{unsupported(0, "does not cover the country IT, and does not cover the language it")}},
		{"inactive models", models("old", "off"), []runs.Fault{unsupported(0, "is deprecated"), unsupported(1, "is disabled")}},
		{"another measurement type", models("plain"), []runs.Fault{unsupported(0, "does not cover the measurement type grounded")}},
		{"everything that a model does not cover", func(p *checks.Proposal) {
			p.MeasurementType, p.Country, p.Language, p.ModelIDs = "none", "DE", "de", []string{"italy"}
		}, []runs.Fault{unsupported(0, "does not cover the measurement type none, and does not cover the country DE, and does not cover the language de")}},
		{"unknown models", models("Everywhere", "everywhere", "", "none"), []runs.Fault{unknown(0), unknown(2), unknown(3)}},
		{"unknown questions", questions("shared", "Shared", ""), []runs.Fault{noQuestion(1), noQuestion(2)}},
		{"another account's questions", questions("theirs", "their archived", "ours"), []runs.Fault{noQuestion(0), noQuestion(1)}},
		{"archived questions", questions("archived", "shared"), []runs.Fault{archived(0)}},
		{"every fault, models first", func(p *checks.Proposal) {
			p.ModelIDs, p.QuestionIDs = []string{"none", "old"}, []string{"none", "archived"}
		}, []runs.Fault{unknown(0), unsupported(1, "is deprecated"), noQuestion(0), archived(1)}},
		{"grounded search is left to its check", models("offline", "pending"), nil},
	})
}

// TestModelSupportError: when questions cannot be read, no fault is reported.
func TestModelSupportError(t *testing.T) {
	failure := errors.New("connection lost")
	c := newCatalog()
	c.err = failure
	p := propose(func(p *checks.Proposal) { p.Catalog, p.ModelIDs = c, []string{"none"} })
	if faults, err := checks.ModelSupport.Run(t.Context(), p); !errors.Is(err, failure) || faults != nil {
		t.Errorf("got %v, %v", faults, err)
	}
}
