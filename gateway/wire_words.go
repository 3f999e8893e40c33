package gateway

import (
	"aiv/auth"
	"aiv/catalog"
	"aiv/gateway/problem"
	"aiv/gateway/reference"
	"aiv/insights"
	"aiv/runs"
)

// said is what the reference says of the members of a wire type, beside their JSON types. A member of which nothing is said
// keeps the reference from being made, and so the tests from passing.
type said map[string]reference.Schema

func text(about string) reference.Schema { return reference.Schema{Description: about} }

func words(about string, enum []string) reference.Schema {
	return reference.Schema{Description: about, Enum: enum}
}

func shaped(about, pattern string) reference.Schema {
	return reference.Schema{Description: about, Pattern: pattern}
}

func anID(about, prefix string) reference.Schema { return shaped(about, reference.IDPattern(prefix)) }

func count(about string) reference.Schema { return reference.Schema{Description: about, Min: new(0)} }

func aTime(about string) reference.Schema {
	return reference.Schema{Description: about, Format: "date-time"}
}

func listOf(about string, item reference.Schema) reference.Schema {
	item.Type = "string"
	return reference.Schema{Description: about, Items: &item}
}

func listOrAll(about string, item reference.Schema) reference.Schema {
	s := listOf(about, item)
	s.Null = true
	return s
}

var (
	aCatalogID = shaped("", catalogID.String())
	aCountry   = shaped("", country.String())
	aLanguage  = shaped("", language.String())
	aWord      = shaped("", measurementType.String())
)

// wireWords describe the wire types. Each stands after those that stand in it.
var wireWords = []struct {
	wire any
	said said
}{
	{identityCredential{}, said{
		"id":                    anID("The credential's id.", "cred"),
		"name":                  text("What the operator called it."),
		"key_prefix":            shaped("The first characters of the key, which are no secret.", `^aiv_live_[0-9A-Za-z]{8}$`),
		"scopes":                listOf("What the credential may do.", words("", auth.Scopes)),
		"rate_limit_per_minute": {Description: "The requests that a minute admits.", Min: new(1), Max: new(auth.MaxRateLimit)},
	}},
	{identityPlan{}, said{
		"code":     text("The plan's code."),
		"features": listOf("What the plan includes. `api_access` is what this API asks for.", text("")),
	}},
	{identity{}, said{
		"api_version": {Type: "string", Description: "The version of the interface.", Const: apiVersion},
		"credential":  text("The credential that the key belongs to."),
		"plan":        text("The plan of its account."),
	}},
	{runCreated{}, said{
		"id":                  anID("The run's id.", "run"),
		"status":              {Type: "string", Description: "`queued`, at creation.", Const: "queued"},
		"total_jobs":          {Description: "Models × questions × repetitions.", Min: new(1)},
		"measurement_type":    shaped("The one asked for.", measurementType.String()),
		"methodology_version": shaped("The methodology applied, such as `AIVM-1.0`.", methodologyVersion),
	}},
	{runJobs{}, said{
		"queued":    count("Jobs that wait."),
		"running":   count("Jobs under way."),
		"completed": count("Jobs that ended with an answer."),
		"failed":    count("Jobs that ended without one."),
		"canceled":  count("Jobs that will not be done."),
	}},
	{runDocument{}, said{
		"id":                  anID("The run's id.", "run"),
		"status":              words("Where the run stands. One that a client does not know is not final.", runs.Statuses),
		"measurement_type":    shaped("What is measured, such as `grounded`.", measurementType.String()),
		"methodology_version": shaped("The methodology applied.", methodologyVersion),
		"model_ids":           listOf("The models measured.", aCatalogID),
		"question_ids":        listOf("The questions asked.", aCatalogID),
		"repetitions":         {Description: "How often each model is asked each question.", Min: new(1)},
		"locale":              shaped("The locale asked in.", locale.String()),
		"country":             shaped("The country asked from.", country.String()),
		"language":            shaped("The language asked in.", language.String()),
		"total_jobs":          {Description: "Models × questions × repetitions.", Min: new(1)},
		"jobs":                text("The jobs by state; they add up to `total_jobs`."),
		"created_at":          aTime("When the run was created."),
		"started_at":          aTime("When its first job began; null before."),
		"finished_at":         aTime("When its last job ended; null before."),
	}},
	{groundedSearch{}, said{
		"supported": text("Whether the model can search."),
		"available": text("Whether it may now: it can, and its provider lacks nothing."),
		"unmet":     listOf("What the provider still lacks.", words("", catalog.Dependencies)),
	}},
	{modelDocument{}, said{
		"id":                shaped("The model's id, as runs name it.", catalogID.String()),
		"name":              text("Its name, for people."),
		"provider":          text("The code of who runs it."),
		"provider_model":    text("What its provider calls it."),
		"status":            words("Only active models are measured.", catalog.ModelStatuses),
		"measurement_types": listOf("What can be measured with it.", aWord),
		"countries":         listOrAll("The countries that it covers; null: all.", aCountry),
		"languages":         listOrAll("The languages that it covers; null: all. `it` covers `it-CH` too, not the other way round.", aLanguage),
		"grounded_search":   text("Whether it may be measured with search."),
	}},
	{questionDocument{}, said{
		"id":         shaped("The question's id, as runs name it.", catalogID.String()),
		"text":       text("What is asked."),
		"language":   shaped("The language of the text.", language.String()),
		"country":    shaped("The country that it is about.", country.String()),
		"topic":      text("What it is about, in a word."),
		"tags":       listOf("Words to find it by.", text("")),
		"status":     words("Archived questions are not measured any more.", catalog.QuestionStatuses),
		"created_at": aTime("When it came into the catalog."),
	}},
	{recommendationDocument{}, said{
		"id":           anID("The recommendation's id.", "rec"),
		"type":         text("What it advises, in a word of the analysis's own."),
		"category":     words("Where it is to be done.", insights.Categories),
		"title":        text("The advice, in a line."),
		"summary":      text("Why, and what to do."),
		"priority":     words("How much it matters.", insights.Priorities),
		"status":       words("What has become of it.", insights.RecommendationStatuses),
		"model_ids":    listOf("The models that it is about; empty: no particular ones.", aCatalogID),
		"question_ids": listOf("The questions that it is about; empty: no particular ones.", aCatalogID),
		"run_id":       anID("The run that it was drawn from, if from one.", "run"),
		"created_at":   aTime("When it was made."),
		"updated_at":   aTime("When it last changed."),
	}},
	{alertDocument{}, said{
		"id":             anID("The alert's id.", "alert"),
		"type":           words("What happened.", insights.AlertTypes),
		"severity":       words("How bad it is.", insights.Severities),
		"status":         words("Whether somebody has seen to it.", insights.AlertStatuses),
		"title":          text("What happened, in a line."),
		"message":        text("What happened, in a sentence or two."),
		"metric":         text("What was measured, in a word of the analysis's own, if anything was."),
		"direction":      words("Where the metric went.", insights.Directions),
		"current_value":  text("The metric now."),
		"baseline_value": text("What it was compared with."),
		"model_id":       shaped("The model that it is about, if about one.", catalogID.String()),
		"question_id":    shaped("The question that it is about, if about one.", catalogID.String()),
		"country":        shaped("The country that it is about, if about one.", country.String()),
		"run_id":         anID("The run that it was drawn from, if from one.", "run"),
		"detected_at":    aTime("When it was detected."),
		"resolved_at":    aTime("When it was resolved; null before."),
	}},
	{problem.Fault{}, said{
		"pointer":   text("A JSON pointer into what was sent, as a URI fragment."),
		"parameter": text("The name of a query parameter."),
		"detail":    text("What is wrong there."),
	}},
	{problem.Document{}, said{
		"type":              {Type: "string", Description: "The problem's place in the reference.", Format: "uri-reference"},
		"title":             text("The problem, in words that are the same each time."),
		"status":            {Description: "The status of the answer.", Min: new(400), Max: new(599)},
		"code":              text("The problem, in a word that a client may switch on."),
		"detail":            text("What was wrong this time, for people."),
		"request_id":        anID("The request's id, as in `X-Request-Id`.", "req"),
		"check":             text("The run check that refuses the run, if one does."),
		"violated-policies": listOf("The rate limit policies that the request would exceed.", text("")),
		"errors":            {Description: "Every fault that was found.", Items: &reference.Schema{Ref: "Fault"}},
	}},
}

const methodologyVersion = `^AIVM-[0-9]+\.[0-9]+$`
