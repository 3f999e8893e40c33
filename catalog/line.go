package catalog

import (
	"slices"
	"unicode/utf8"

	"aiv/store/jsonl"
)

// incoming has the rows of a file by kind.
type incoming struct {
	providers, methodologies, models, questions jsonl.Table
}

// newIncoming returns empty tables with the columns of the upserts. The checks of a table are queries for its faulty
// lines, which run when all lines are in the database.
func newIncoming() *incoming {
	return &incoming{
		providers:     jsonl.Table{Name: "providers", Columns: []string{"code", "name"}},
		methodologies: jsonl.Table{Name: "methodologies", Columns: []string{"version", "status", "measurement_types", "max_repetitions", "max_jobs"}},
		models: jsonl.Table{
			Name: "models",
			Columns: []string{"id", "name", "provider_code", "provider_model", "status", "measurement_types", "countries", "languages",
				"grounded_search"},
			Checks: []jsonl.Check{{Query: unknownProviders, Reason: "unknown provider"}},
		},
		// Shared questions are among the own ones here, without an account, because an id may be on one line only.
		questions: jsonl.Table{
			Name: "own_questions", Columns: []string{"id", "account_id", "text", "language", "country", "topic", "tags", "status"},
			Checks: []jsonl.Check{
				{Query: unknownAccounts, Reason: "unknown account"},
				{Query: erasedAccounts, Reason: "the account is erased"},
				{Query: movedQuestions, CitusTables: existingOwn,
					Reason: "account_id differs from the existing question's; it cannot be changed"},
				{Query: changedQuestions, CitusTables: existingOwn,
					Reason: "text, language or country differs from the existing question's; these cannot be changed; add another question"},
			},
		},
	}
}

// add reads a line.
func (in *incoming) add(l *jsonl.Line) {
	switch jsonl.OneOf(l, "kind", "provider", "model", "question", "methodology") {
	case "provider":
		in.providers.Add(l, jsonl.Matching(l, "code", ProviderPattern()), jsonl.Text(l, "name"))
	case "methodology":
		in.methodologies.Add(l, jsonl.Matching(l, "version", MethodologyPattern()), jsonl.OneOf(l, "status", MethodologyStatuses...),
			measurementTypes(l), jsonl.Between(l, "max_repetitions", 1, 32767), jsonl.Between(l, "max_jobs", 1, 1_000_000))
	case "model":
		in.models.Add(l, jsonl.Matching(l, "id", IDPattern()), jsonl.Text(l, "name"), jsonl.Matching(l, "provider", ProviderPattern()),
			jsonl.Text(l, "provider_model"), jsonl.OneOf(l, "status", ModelStatuses...), measurementTypes(l),
			jsonl.ListOrNull(l, "countries", CountryPattern()), jsonl.ListOrNull(l, "languages", LanguagePattern()),
			jsonl.Field[bool](l, "grounded_search"))
	case "question":
		// The topic and the tags have further checks, so they are read before the row is added.
		topic, tags := jsonl.Field[string](l, "topic"), jsonl.List(l, "tags", nil)
		if l.Has("topic") && topic == "" {
			l.Errorf("topic must not be empty")
		}
		checkFilterable(l, "topic", topic)
		checkFilterable(l, "tags", tags...)
		// The values are in the order of Columns, as in all calls of Add.
		in.questions.Add(l, jsonl.Matching(l, "id", IDPattern()), jsonl.IDOrNull(l, "account_id", "acct", "an account"),
			jsonl.Text(l, "text"), jsonl.Matching(l, "language", LanguagePattern()), jsonl.Matching(l, "country", CountryPattern()),
			topic, tags, jsonl.OneOf(l, "status", QuestionStatuses...))
	// OneOf has recorded that the kind is unknown or missing. Other members cannot be checked without it.
	default:
		l.SkipRest()
	}
}

// checkFilterable checks that filters of the API can name the texts.
func checkFilterable(l *jsonl.Line, name string, texts ...string) {
	if slices.ContainsFunc(texts, func(t string) bool { return utf8.RuneCountInString(t) > MaxFilterable }) {
		l.Errorf("%s must not be longer than %d characters", name, MaxFilterable)
	}
}

// MaxFilterable bounds the characters of a topic or tag.
const MaxFilterable = 128

// measurementTypes reads the list of a model or a methodology, which must not be empty.
func measurementTypes(l *jsonl.Line) []string {
	v := jsonl.List(l, "measurement_types", MeasurementTypePattern())
	if l.Has("measurement_types") && len(v) == 0 {
		l.Errorf("measurement_types must not be empty")
	}
	return v
}
