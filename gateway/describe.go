package gateway

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"aiv/auth"
	"aiv/gateway/problem"
	"aiv/gateway/reference"
	"aiv/idempotency"
)

// describe describes the API by the tables that it is served by.
func describe() *reference.API {
	a := &reference.API{
		Base: Base, Version: apiVersion, Scopes: auth.Scopes,
		MaxBody: maxBody, MaxLimit: maxLimit, PageLimit: defaultLimit, KeyLimit: idempotency.MaxKeyLength, RateLimit: auth.DefaultRateLimit,
	}
	a.Problems = describedProblems()
	for _, w := range wireWords {
		s := reference.ObjectOf(w.wire, w.said, wireNames)
		if _, ok := w.wire.(problem.Document); ok {
			for i := range s.Members {
				if m := &s.Members[i]; m.Name == "code" {
					for _, p := range a.Problems {
						m.Schema.Enum = append(m.Schema.Enum, p.Code)
					}
				}
			}
		}
		a.Schemas = append(a.Schemas, reference.Named{Name: wireName(w.wire), Schema: s})
	}
	a.Schemas = append(a.Schemas, reference.Named{Name: "NewRun", Schema: proposalForm()})
	for i := range routes {
		r := describedRoute(&routes[i], a.Problems)
		if r.List {
			item := r.Answer
			r.Answer += "Page"
			a.Schemas = append(a.Schemas, reference.Named{Name: r.Answer, Schema: pageForm(item)})
		}
		a.Routes = append(a.Routes, r)
	}
	return a
}

// describedProblems are the gateway's own and those that run checks tell, by status.
func describedProblems() []reference.Problem {
	problems := reference.CheckProblems(func(code string) bool { return problem.KindOf(code).Status > 0 })
	for _, kind := range problem.Kinds() {
		problems = append(problems, reference.Problem{Code: kind.Code, Status: kind.Status, Title: kind.Title})
	}
	slices.SortFunc(problems, func(a, b reference.Problem) int {
		return cmp.Or(a.Status-b.Status, cmp.Compare(a.Check, b.Check), cmp.Compare(a.Code, b.Code))
	})
	return problems
}

func describedRoute(r *route, problems []reference.Problem) reference.Route {
	d := reference.Route{
		Method: r.method, Path: r.path, Scopes: r.scopes, Entitled: r.entitled, Parameters: r.form.parameters,
		Status: http.StatusOK, Answer: wireName(r.form.answer), List: r.form.list, Tagged: r.form.tagged,
		Codes: []string{problem.InvalidParameter, problem.MissingCredentials, problem.InvalidAPIKey, problem.RateLimitExceeded, problem.InternalError,
			problem.Unavailable, problem.Overloaded},
	}
	if r.entitled {
		d.Codes = append(d.Codes, problem.EntitlementRequired)
	}
	if len(r.scopes) > 0 {
		d.Codes = append(d.Codes, problem.InsufficientScope)
	}
	if strings.HasSuffix(r.path, "{id}") {
		d.Parameters = append(d.Parameters, reference.Parameter{Name: "id", In: "path", Required: true, Is: "the id of a run",
			Schema: reference.Schema{Type: "string", Pattern: reference.IDPattern("run")}})
		d.Codes = append(d.Codes, problem.RunNotFound)
	}
	if r.method == http.MethodPost {
		d.Status, d.Body = http.StatusAccepted, "NewRun"
		d.Parameters = append(d.Parameters, reference.Parameter{Name: "Idempotency-Key", In: "header", Required: true,
			Is: "1 to 255 visible ASCII characters, bare or as a quoted string", Schema: reference.Schema{Type: "string", Pattern: keyForm}})
		d.Codes = append(d.Codes, problem.InvalidJSON, problem.InvalidRequest, problem.IdempotencyKeyMissing, problem.IdempotencyKeyInvalid,
			problem.EntitlementRequired, problem.BodyTooLarge, problem.UnsupportedMediaType, problem.IdempotencyKeyReused, problem.IdempotencyKeyInUse)
		for _, p := range problems {
			if p.Check != "" {
				d.Codes = append(d.Codes, p.Code)
			}
		}
	}
	order := func(code string) int {
		return slices.IndexFunc(problems, func(p reference.Problem) bool { return p.Code == code })
	}
	slices.SortFunc(d.Codes, func(a, b string) int { return order(a) - order(b) })
	return d
}

// keyForm is what idempotency.ParseKey takes.
const keyForm = `^([!#-~][!-~]{0,254}|"([!#-\[\]-~]|\\["\\]){1,255}")$`

// proposalForm is what readProposal takes.
func proposalForm() reference.Schema {
	ids := func(about string, most int) reference.Schema {
		return reference.Schema{Type: "array", Description: about, Min: new(1), Max: new(most), Unique: true,
			Items: &reference.Schema{Type: "string", Pattern: catalogID.String()}}
	}
	text := func(about, pattern, example string) reference.Schema {
		return reference.Schema{Type: "string", Description: about, Pattern: pattern, Example: example}
	}
	return reference.Schema{Type: "object", Closed: true, Members: []reference.Member{
		{Name: "model_ids", Schema: ids("The models to measure, of the catalog of models, no id twice.", maxModels)},
		{Name: "question_ids", Schema: ids("The questions to ask, of the catalog of questions, no id twice.", maxQuestions)},
		{Name: "repetitions", Schema: reference.Schema{Type: "integer", Min: new(1), Example: 3,
			Description: "How often each model is asked each question. The methodology bounds it (AIVM-1.0: 20). Written as an integer: `3.0` is refused."}},
		{Name: "measurement_type", Schema: text("What is measured: `grounded`, or another type that an active methodology covers.", measurementType.String(), "grounded")},
		{Name: "locale", Schema: text("A language and a region.", locale.String(), "it-IT")},
		{Name: "country", Schema: text("Two upper-case letters.", country.String(), "IT")},
		{Name: "language", Schema: text("A language, or one with a region.", language.String(), "it")},
	}}
}

// pageForm is what listDocument is.
func pageForm(item string) reference.Schema {
	return reference.Schema{Type: "object", Members: []reference.Member{
		{Name: "data", Schema: reference.Schema{Type: "array", Description: "The items of the page.", Items: &reference.Schema{Ref: item}}},
		{Name: "has_more", Schema: reference.Schema{Type: "boolean", Description: "Whether there is a next page."}},
		{Name: "next_cursor", Schema: reference.Schema{Type: "string", Null: true, Description: "The `cursor` of the next page; null on the last one."}},
	}}
}
