package jobs

import (
	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A description is a row of describeGrants: the parameters and questions of a grant.
type description struct {
	parameters             RunParameters
	repetitions, questions int // of the run
	first                  int // of the grant's questions, from 1 in the run
	ids, texts             []string
	languages, countries   []string
}

// locate returns the repetition of a job, from 1, and the index of its question among the questions of the grant.
func (d *description) locate(ordinal int32) (repetition, question int) {
	n := int(ordinal) - 1
	return n%d.repetitions + 1, n/d.repetitions%d.questions + 1 - d.first
}

// batchDescriptions reads the descriptions of the grants. A grant whose run was deleted gets none.
func (w *claimWrites) batchDescriptions(b *pgx.Batch) {
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
	b.Queue(describeGrants, citusGrants, accounts, runs, first, last).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var no int
			var d description
			p := &d.parameters
			if err := rows.Scan(&no, &p.MeasurementType, &p.MethodologyVersion, &p.Locale, &p.Country, &p.Language, &d.repetitions,
				&d.questions, &p.ModelID, &p.ProviderModel, &d.first, &d.ids, &d.texts, &d.languages, &d.countries); err != nil {
				return err
			}
			// no is from WITH ORDINALITY, which counts from 1.
			grants[no-1].description = &d
		}
		return rows.Err()
	})
}

// jobs returns the jobs that one claim got. It follows write.
func (w *claimWrites) jobs(claim int) []Job {
	var out []Job
	until := w.now.Add(w.requests[claim].Lease)
	for _, g := range w.grants[claim] {
		d := g.description
		// The jobs of a grant share their questions and parameters.
		questions := make([]Question, len(d.ids))
		for i := range questions {
			questions[i] = Question{d.ids[i], d.texts[i], d.languages[i], d.countries[i]}
		}
		for ordinal := g.first; ordinal <= g.last; ordinal++ {
			repetition, question := d.locate(ordinal)
			out = append(out, Job{
				Key: Key{g.span.account, g.span.run, ordinal}, Attempt: int(g.span.attempt) + 1, LeaseUntil: until, Provider: g.span.provider,
				Repetition: repetition, Question: &questions[question], Parameters: &d.parameters,
			})
		}
	}
	return out
}
