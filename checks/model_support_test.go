package checks_test

import (
	"testing"

	"aiv/checks"
)

func TestModelSupport(t *testing.T) {
	ids := func(models, questions []string) func(*checks.Proposal) {
		return func(p *checks.Proposal) { p.ModelIDs, p.QuestionIDs = models, questions }
	}
	models := func(models ...string) func(*checks.Proposal) { return ids(models, []string{"shared"}) }
	where := func(measurementType, country, language string, ids ...string) func(*checks.Proposal) {
		return func(p *checks.Proposal) {
			p.MeasurementType, p.Country, p.Language, p.ModelIDs = measurementType, country, language, ids
		}
	}
	const noModel, noQuestion = ": there is no such model", ": there is no such question"
	checkTable(t, checks.ModelSupport, []row{
		{"supported models and questions", ids([]string{"everywhere", "italy"}, []string{"shared", "ours"}), nil},
		{"a region does not cover its language", where("grounded", "IT", "it", "italy", "rome"),
			[]string{"model_not_supported /model_ids/1: the model does not cover the language it"}},
		{"inactive models", models("old", "off"), []string{"model_not_supported /model_ids/0: the model is deprecated",
			"model_not_supported /model_ids/1: the model is disabled"}},
		{"everything that a model does not cover", where("none", "DE", "de", "italy"), []string{"model_not_supported /model_ids/0: " +
			"the model does not cover the measurement type none, and does not cover the country DE, and does not cover the language de"}},
		{"unknown models", models("Everywhere", "everywhere", ""),
			[]string{"unknown_model /model_ids/0" + noModel, "unknown_model /model_ids/2" + noModel}},
		{"unknown questions", ids([]string{"everywhere"}, []string{"shared", "Shared", ""}),
			[]string{"unknown_question /question_ids/1" + noQuestion, "unknown_question /question_ids/2" + noQuestion}},
		{"every fault, models first", ids([]string{"none", "old"}, []string{"none", "archived", "shared"}), []string{
			"unknown_model /model_ids/0" + noModel, "model_not_supported /model_ids/1: the model is deprecated",
			"unknown_question /question_ids/0" + noQuestion, "question_archived /question_ids/1: the question is archived"}},
		{"grounded search is left to its check", models("offline", "pending"), nil},
	})
}
