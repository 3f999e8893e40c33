package gateway

import (
	"context"
	"net/http"

	"aiv/catalog"
	"aiv/gateway/wire"
	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/strictjson"
)

// previewDocument is the response of POST /v1/brands/preview.
type previewDocument struct {
	Answers   int              `json:"answers"`
	Mentioned int              `json:"mentioned"`
	Cited     int              `json:"cited"`
	Names     []string         `json:"names"` // the name, the aliases and the names derived from them
	Samples   []sampleDocument `json:"samples"`
}

// sampleDocument is the first occurrence of the draft in an answer.
type sampleDocument struct {
	RunID    string  `json:"run_id"`
	ResultID string  `json:"result_id"`
	Matched  string  `json:"matched"` // the text that matched
	Excerpt  string  `json:"excerpt"` // that text with the text around it
	Flag     *string `json:"flag"`    // the first one; null: none
}

func newPreviewDocument(account store.ID, p *visibility.Preview) previewDocument {
	d := previewDocument{Answers: p.Answers, Mentioned: p.Mentioned, Cited: p.Cited, Names: p.Names, Samples: []sampleDocument{}}
	for _, s := range p.Samples {
		id := jobs.Key{Account: account, Run: s.Run, Ordinal: s.Ordinal}.String()
		d.Samples = append(d.Samples, sampleDocument{s.Run.Text("run"), id, s.Matched, s.Excerpt, textOrNil(s.Flag)})
	}
	return d
}

// previewBrand changes nothing, and is bounded as other reads of the measurement are.
func (g *Gateway) previewBrand(x *exchange, r *http.Request) error {
	body, err := readBrandBody(x, r, brandDraftMembers, nil)
	if err != nil {
		return err
	}
	draft := visibility.Draft{Change: body.Change, NewID: g.cfg.NewID()}
	// The draft takes the place of this brand among the active brands.
	if draft.Replaces, err = body.id("brand_id", "brand", brands.ErrNotFound); err != nil {
		return err
	}
	// Without a run, the newest runs are matched.
	run, err := body.id("run_id", "run", visibility.ErrRunNotFound)
	if err != nil {
		return err
	}
	return body.refused(g.measure(x, r, func(ctx context.Context, db store.Querier) (page, error) {
		p, err := g.answers.Preview(ctx, db, x.credential().AccountID, &draft, run)
		if err != nil {
			return page{}, err
		}
		return page{body: wire.Encode(newPreviewDocument(x.credential().AccountID, p))}, nil
	}))
}

// id returns the id in an optional member. For a malformed id, which no object has, it returns the error absent.
func (b *brandBody) id(name, prefix string, absent error) (*store.ID, error) {
	v := b.Member(name)
	if v == nil || v.Kind == strictjson.KindNull {
		return nil, nil
	}
	id, err := store.ParseID(prefix, v.Text)
	if err != nil {
		return nil, absent
	}
	return &id, nil
}

// newAnswers returns the counter that matches stored answers for previews. It records no facts.
func newAnswers() *visibility.Counter {
	return visibility.NewCounter(visibility.Config{Questions: catalog.QuestionTexts, Answers: eachAnswer, Ended: endedJobs})
}

// eachAnswer calls each with the stored answers of jobs, as package visibility takes them.
func eachAnswer(ctx context.Context, db store.Querier, account, run store.ID, ordinals []int32, each func([]visibility.Job) error) error {
	return jobs.EachAnswer(ctx, db, account, run, ordinals, func(found []jobs.Ended) error {
		all := make([]visibility.Job, len(found))
		for i, f := range found {
			all[i] = visibility.Job{Account: account, Run: run, Ordinal: f.Key.Ordinal, Answer: matchedAnswer(f.Answer)}
		}
		return each(all)
	})
}

// matchedAnswer returns an answer with what package visibility matches: its text and its citations.
func matchedAnswer(a *answers.Answer) *visibility.Answer {
	of := &visibility.Answer{Text: a.Text, Version: a.ModelVersion, Searched: a.Searched, Truncated: a.Truncated}
	for i := range a.Citations {
		of.Cite(a.Citations[i].URL, a.Citations[i].Title)
	}
	return of
}

// endedJobs returns ended jobs as package visibility takes them. The types have equal fields.
func endedJobs(ctx context.Context, db store.Querier, account, run store.ID, after, last int32) ([]visibility.EndedJob, error) {
	ended, err := jobs.ReadEnded(ctx, db, account, run, after, last)
	all := make([]visibility.EndedJob, len(ended))
	for i := range ended {
		all[i] = visibility.EndedJob(ended[i])
	}
	return all, err
}
