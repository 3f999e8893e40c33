package gateway

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"aiv/gateway/problem"
	"aiv/gateway/wire"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/results"
	"aiv/store"
	"aiv/store/strictjson"
)

// appendResult appends a job of a run as JSON: an item of GET /v1/runs/{id}/results. TestOpenAPIAndGoldenFiles validates
// it by its schema.
func appendResult(b []byte, r *countedResult) []byte {
	b = append(b, '{')
	b = wire.Text(b, "id", r.Key.String())
	b = wire.Text(b, "model_id", r.ModelID)
	b = wire.Text(b, "question_id", r.QuestionID)
	b = wire.Int(b, "repetition", r.Repetition)
	b = wire.Text(b, "status", r.Status)
	b = wire.Int(b, "attempts", r.Attempts)
	// The name is appended in any case; then the value, or null.
	if b = wire.Member(b, "answer"); r.Answer != nil {
		b = appendAnswer(b, r.Answer, r.chars)
	} else {
		b = append(b, "null"...)
	}
	if b = wire.Member(b, "error"); r.ErrorCode != nil {
		b = wire.Text(append(b, '{'), "code", *r.ErrorCode)
		b = append(wire.Text(b, "message", *r.ErrorMessage), '}')
	} else {
		b = append(b, "null"...)
	}
	b = wire.TimeOrNull(b, "started_at", r.StartedAt)
	b = wire.TimeOrNull(b, "finished_at", r.FinishedAt)
	return append(r.appendBrands(b), '}')
}

// appendAnswer appends an answer. It cuts and marks a text of more than chars characters, unless chars is negative.
func appendAnswer(b []byte, a *answers.Answer, chars int) []byte {
	b = append(b, '{')
	if n := utf8.RuneCountInString(a.Text); chars >= 0 && n > chars {
		b = wire.Text(b, "text", firstCharacters(a.Text, chars))
		// Only tools cut texts, so only their results have these members.
		b = wire.Int(append(wire.Member(b, "text_truncated"), "true"...), "text_characters", n)
	} else {
		b = wire.Text(b, "text", a.Text)
	}
	// Lists without elements are [], not null.
	b = append(wire.Member(b, "citations"), '[')
	for i := range a.Citations {
		c := &a.Citations[i]
		b = wire.Int(append(wire.Item(b), '{'), "position", c.Position)
		b = wire.Text(b, "url", c.URL)
		b = wire.Text(b, "domain", c.Domain)
		b = append(wire.TextOrNull(b, "title", c.Title), '}')
	}
	b = append(wire.Member(append(b, ']'), "search_queries"), '[')
	for _, q := range a.SearchQueries {
		b = strictjson.AppendString(wire.Item(b), q)
	}
	b = wire.TextOrNull(append(b, ']'), "model_version", a.ModelVersion)
	b = wire.Time(b, "answered_at", a.AnsweredAt)
	if b = wire.Member(b, "searched"); a.Searched != nil {
		b = strconv.AppendBool(b, *a.Searched)
	} else {
		b = append(b, "null"...)
	}
	b = strconv.AppendBool(wire.Member(b, "truncated"), a.Truncated)
	if b = wire.Member(b, "usage"); a.Usage != nil {
		b = appendCount(append(b, '{'), "input_tokens", a.Usage.InputTokens)
		b = appendCount(b, "output_tokens", a.Usage.OutputTokens)
		b = append(appendCount(b, "searches", a.Usage.Searches), '}')
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

// firstCharacters returns the first n characters of a text that has more.
func firstCharacters(s string, n int) string {
	// A range over a string has the index of each character.
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// appendCount appends a number, or null for nil.
func appendCount(b []byte, name string, n *int64) []byte {
	if b = wire.Member(b, name); n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, *n, 10)
}

// A countedResult is a job with what its answer shows of brands.
type countedResult struct {
	results.Result
	counted bool // the answer is counted
	brands  []visibility.BrandFact
	ids     map[int32]store.ID // of brands by number
	chars   int                // of the text that are shown; negative: all
}

// appendBrands appends the brands of an answer by position, and null if it is not counted.
func (r *countedResult) appendBrands(b []byte) []byte {
	b = wire.Member(b, "brands")
	if !r.counted {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for _, f := range r.brands {
		b = append(wire.Item(b), '{')
		b = wire.ID(b, "brand_id", "brand", r.ids[f.Brand])
		b = strconv.AppendBool(wire.Member(b, "mentioned"), f.Mentions > 0)
		b = wire.Int(b, "mentions", int(f.Mentions))
		// A brand that is cited and not mentioned has no position.
		if b = wire.Member(b, "position"); f.Position > 0 {
			b = strconv.AppendInt(b, int64(f.Position), 10)
		} else {
			b = append(b, "null"...)
		}
		b = strconv.AppendBool(wire.Member(b, "cited"), f.Citations > 0)
		b = wire.Int(b, "citations", int(f.Citations))
		b = append(wire.Texts(b, "flags", f.Flags.Strings()), '}')
	}
	return append(b, ']')
}

// resultsQuery is what the parameters of GET /v1/runs/{id}/results say.
type resultsQuery struct {
	results.Filter
	brand *store.ID // nil: results are not selected by a brand
	visibility.Choice
}

// resultList is the list of a run's jobs, in the order of their ordinals.
var resultList = list[resultsQuery, countedResult]{
	filters: []filter[resultsQuery]{
		wordsFilter("status", results.Statuses, func(q *resultsQuery) *[]string { return &q.Statuses }),
		formFilter("model_id", catalogID, func(q *resultsQuery) *string { return &q.ModelID }),
		formFilter("question_id", catalogID, func(q *resultsQuery) *string { return &q.QuestionID }),
		brandFilter(func(q *resultsQuery) **store.ID { return &q.brand }),
		boolFilter("mentioned", func(q *resultsQuery) **bool { return &q.Mentioned }),
		boolFilter("cited", func(q *resultsQuery) **bool { return &q.Cited }),
	},
	depend: func(x *exchange, f *problem.Faults) {
		// brand_id requires mentioned or cited, and both of them require brand_id.
		switch chooses := x.given("mentioned") || x.given("cited"); {
		case chooses && !x.given("brand_id"):
			f.AddParameter("brand_id", "is required with mentioned and cited")
		case !chooses && x.given("brand_id"):
			f.AddParameter("brand_id", "requires mentioned or cited")
		}
	},
	sortKey: func(r *countedResult) store.Position { return store.Position{Text: strconv.Itoa(int(r.Key.Ordinal))} },
	byText:  true,
	append:  appendResult,
}

// readResults responds with a page of a run's results.
func (g *Gateway) readResults(x *exchange, r *http.Request) error {
	var q resultsQuery
	// resultList.serve cannot be used, because the query also needs the run and the chosen brand.
	selected, err := resultList.parameters(g, x, &q)
	if err != nil {
		return err
	}
	run, err := runID(r)
	if err != nil {
		return err
	}
	after := 0
	if selected.After != nil {
		// The cursor is authentic, so an error is internal.
		if after, err = strconv.Atoi(selected.After.Text); err != nil {
			return err
		}
	}
	account := x.credential().AccountID
	// resultList.depend has checked that mentioned or cited is given too.
	if q.brand != nil {
		q.Choice.Brand = *q.brand
		q.Choose = func(ctx context.Context, db store.Querier, after int32, n int) ([]int32, error) {
			return visibility.Choose(ctx, db, account, run, q.Choice, after, n)
		}
	}
	read := func(ctx context.Context, db store.Querier) ([]countedResult, bool, error) {
		page, more, err := results.List(ctx, db, account, run, q.Filter, int32(after), selected.Limit)
		if err != nil {
			return nil, false, err
		}
		counted, err := countResults(ctx, db, account, run, page)
		for i := range counted {
			counted[i].chars = x.answerChars()
		}
		return counted, more, err
	}
	if q.brand != nil { // the results show the brands by which they were selected
		read = inSnapshot(read)
	}
	return resultList.respond(g, x, r, read)
}

// inSnapshot returns a function that reads everything in one snapshot of the database.
func inSnapshot(read func(context.Context, store.Querier) ([]countedResult, bool, error)) func(context.Context, store.Querier) ([]countedResult, bool, error) {
	return func(ctx context.Context, db store.Querier) (page []countedResult, more bool, err error) {
		err = store.Snapshot(ctx, db, func(tx pgx.Tx) error {
			page, more, err = read(ctx, tx)
			return err
		})
		return page, more, err
	}
}

// countResults adds what the answers of a page show of brands.
func countResults(ctx context.Context, db store.Querier, account, run store.ID, page []results.Result) ([]countedResult, error) {
	counted := make([]countedResult, len(page))
	for i := range page {
		counted[i].Result = page[i]
	}
	if len(page) == 0 {
		return counted, nil
	}
	// The page is in the order of ordinals, so its first and last jobs bound the facts.
	facts, active, err := visibility.ReadFacts(ctx, db, account, run, page[0].Key.Ordinal, page[len(page)-1].Key.Ordinal)
	if err != nil {
		return nil, err
	}
	ids := make(map[int32]store.ID, len(active))
	for _, b := range active {
		ids[b.Number] = b.ID
	}
	for i := range counted {
		r := &counted[i]
		// An answer without facts is not counted yet, or empty or truncated.
		fact, found := facts[r.Key.Ordinal]
		found = found && r.Status == "completed" // else the job was settled after the page was read
		r.counted, r.brands, r.ids = found, fact.Brands, ids
		// Brands that are not mentioned have no position and follow in the order of ids.
		slices.SortFunc(r.brands, func(a, b visibility.BrandFact) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), ids[a.Brand].Compare(ids[b.Brand]))
		})
	}
	return counted, nil
}

// rank orders brands by position, those that are not mentioned last.
func rank(f visibility.BrandFact) int32 {
	if f.Position == 0 {
		return math.MaxInt32
	}
	return f.Position
}
