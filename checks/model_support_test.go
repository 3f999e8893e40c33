package checks_test

import (
	"errors"
	"testing"

	"aiv/checks"
	"aiv/runs"
)

func TestModelSupport(t *testing.T) {
	ids := func(models, questions []string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.ModelIDs, p.QuestionIDs = models, questions }
	}
	models := func(models ...string) func(*checks.Proposal) { return ids(models, []string{"shared"}) }
	questions := func(questions ...string) func(*checks.Proposal) { return ids([]string{"everywhere"}, questions) }
	where := func(country, language string, ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.Country, p.Language, p.ModelIDs = country, language, ids }
	}
	unsupported := at("model_ids", "model_not_supported", "A model does not support the run")
	unknown := func(i int) runs.Fault {
		return at("model_ids", "unknown_model", "A model is not in the catalog")(i, "there is no such model")
	}
	noQuestion := func(i int) runs.Fault {
		return at("question_ids", "unknown_question", "A question is not in the catalog")(i, "there is no such question")
	}
	archived := func(i int) runs.Fault {
		return at("question_ids", "question_archived", "A question is archived")(i, "the question is archived")
	}
	checkTable(t, checks.ModelSupport, []row{
		{"supported models and questions", ids([]string{"everywhere", "italy"}, []string{"shared", "ours"}), nil},
		{"a region does not cover its language", where("IT", "it", "italy", "rome"),
			[]runs.Fault{unsupported(1, "the model does not cover the language it")}},
		{"another country", where("SM", "it-IT", "italy", "rome"),
			[]runs.Fault{unsupported(1, "the model does not cover the country SM")}},
		{"an empty list covers nothing", models("nowhere"),
			[]runs.Fault{unsupported(0, "the model does not cover the country IT, and does not cover the language it")}},
		{"inactive models", models("old", "off"),
			[]runs.Fault{unsupported(0, "the model is deprecated"), unsupported(1, "the model is disabled")}},
		{"another measurement type", models("plain"),
			[]runs.Fault{unsupported(0, "the model does not cover the measurement type grounded")}},
		{"everything that a model does not cover", func(p *checks.Proposal) {
			p.MeasurementType, p.Country, p.Language, p.ModelIDs = "none", "DE", "de", []string{"italy"}
		}, []runs.Fault{unsupported(0, "the model does not cover the measurement type none, "+
			"and does not cover the country DE, and does not cover the language de")}},
		{"unknown models", models("Everywhere", "everywhere", "", "none"), []runs.Fault{unknown(0), unknown(2), unknown(3)}},
		{"unknown questions", questions("shared", "Shared", ""), []runs.Fault{noQuestion(1), noQuestion(2)}},
		{"another account's questions", questions("theirs", "their archived", "ours"), []runs.Fault{noQuestion(0), noQuestion(1)}},
		{"every fault, models first", ids([]string{"none", "old"}, []string{"none", "archived", "shared"}),
			[]runs.Fault{unknown(0), unsupported(1, "the model is deprecated"), noQuestion(0), archived(1)}},
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
