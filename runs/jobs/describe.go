package jobs

import (
	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A description is a row of describeGrants: the parameters and questions of a grant.
type description struct {
	parameters             RunParameters
	repetitions, questions int
	first                  int // of the questions, from 1
	ids, texts             []string
	languages, countries   []string
}

func (w *claimWrites) queueDescriptions(b *pgx.Batch) {
	var accounts, runs []store.ID
	var first, last []int32
	var grants []*grant
	for _, g := range w.all {
		grants = append(grants, g)
		accounts, runs = append(accounts, g.span.account), append(runs, g.span.run)
		first, last = append(first, g.first), append(last, g.last)
	}
	if len(grants) == 0 {
		return
	}
	w.described = make(map[*span]map[int32]*description, len(grants))
	b.Queue(describeGrants, store.OnCitus(citusGrants), accounts, runs, first, last).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var no int
			var d description
			p := &d.parameters
			if err := rows.Scan(&no, &p.MeasurementType, &p.MethodologyVersion, &p.Locale, &p.Country, &p.Language, &d.repetitions,
				&d.questions, &p.ModelID, &p.ProviderModel, &d.first, &d.ids, &d.texts, &d.languages, &d.countries); err != nil {
				return err
			}
			g := grants[no-1]
			if w.described[g.span] == nil {
				w.described[g.span] = make(map[int32]*description)
			}
			w.described[g.span][g.first] = &d
		}
		return rows.Err()
	})
}

// jobs returns the jobs of one claim.
func (w *claimWrites) jobs(claim int) []Job {
	var out []Job
	for i := range w.grants[claim] {
		g := &w.grants[claim][i]
		d := w.described[g.span][g.first]
		if d == nil || !w.started[runKey{g.span.account, g.span.run}] {
			continue
		}
		questions := make([]Question, len(d.ids))
		for i := range questions {
			questions[i] = Question{d.ids[i], d.texts[i], d.languages[i], d.countries[i]}
		}
		until := w.now.Add(w.requests[claim].Lease)
		for ordinal := g.first; ordinal <= g.last; ordinal++ {
			at := int(ordinal) - 1
			out = append(out, Job{
				Key: Key{g.span.account, g.span.run, ordinal}, Attempt: int(g.span.attempt) + 1, LeaseUntil: until, Provider: g.span.provider,
				Repetition: at%d.repetitions + 1, Question: &questions[at/d.repetitions%d.questions+1-d.first], Parameters: &d.parameters,
			})
		}
	}
	return out
}
