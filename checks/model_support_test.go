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
	place := func(country, language string, ids ...string) func(*checks.Proposal) {
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
	checkTable(t, checks.ModelSupport{}, []row{
		{"models and questions that can be had", func(p *checks.Proposal) {
			p.ModelIDs, p.QuestionIDs = []string{"everywhere", "italy"}, []string{"shared", "ours"}
		}, nil},
		{"a language covers its regions", place("IT", "it-IT", "everywhere", "italy", "rome"), nil},
		{"a region does not cover its language", place("IT", "it", "italy", "rome"), []runs.Fault{unsupported(1, "does not cover the language it")}},
		{"another region", place("IT", "it-CH", "italy", "rome"), []runs.Fault{unsupported(1, "does not cover the language it-CH")}},
		{"a language that begins alike", place("IT", "ita", "italy"), []runs.Fault{unsupported(0, "does not cover the language ita")}},
		{"another country", place("SM", "it-IT", "italy", "rome"), []runs.Fault{unsupported(1, "does not cover the country SM")}},
		{"country and language need not agree", place("SM", "de-AT", "everywhere"), nil},
		{"an empty list covers nothing", models("nowhere"), []runs.Fault{unsupported(0, "does not cover the country IT, and does not cover the language it")}},
		{"inactive models", models("old", "off"), []runs.Fault{unsupported(0, "is deprecated"), unsupported(1, "is disabled")}},
		{"another measurement type", models("plain"), []runs.Fault{unsupported(0, "does not cover the measurement type grounded")}},
		{"all that a model lacks", func(p *checks.Proposal) {
			p.MeasurementType, p.Country, p.Language, p.ModelIDs = "none", "DE", "de", []string{"italy"}
		}, []runs.Fault{unsupported(0, "does not cover the measurement type none, and does not cover the country DE, and does not cover the language de")}},
		{"models that do not exist", models("Everywhere", "everywhere", "", "none"), []runs.Fault{unknown(0), unknown(2), unknown(3)}},
		{"questions that do not exist", questions("shared", "Shared", ""), []runs.Fault{noQuestion(1), noQuestion(2)}},
		{"another account's questions are as if they were not", questions("theirs", "their archived", "ours"), []runs.Fault{noQuestion(0), noQuestion(1)}},
		{"archived questions", questions("archived", "shared"), []runs.Fault{archived(0)}},
		{"every fault, models first", func(p *checks.Proposal) {
			p.ModelIDs, p.QuestionIDs = []string{"none", "old"}, []string{"none", "archived"}
		}, []runs.Fault{unknown(0), unsupported(1, "is deprecated"), noQuestion(0), archived(1)}},
		{"grounded search is not its concern", models("offline", "pending"), nil},
	})
}

func TestModelSupportCannotTell(t *testing.T) {
	away := errors.New("away")
	s := standard()
	s.err = away
	p := propose(func(p *checks.Proposal) { p.Catalog, p.ModelIDs = s, []string{"none"} })
	if faults, err := (checks.ModelSupport{}).Check(t.Context(), p); !errors.Is(err, away) || faults != nil {
		t.Errorf("got %v, %v", faults, err)
	}
}
