package jobs_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/runs/answers"
	"aiv/runs/jobs"
	"aiv/store"
)

// BenchmarkWork claims and settles the jobs of one run, 100 at a time by 4 callers, each with an answer of 1.3 KiB.
func BenchmarkWork(b *testing.B) {
	s := newSite(b)
	var models []string
	for n := range 50 {
		models = append(models, fmt.Sprint("m1-", n))
	}
	s.exec(b, `INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
		SELECT m, 'Model', 'p1', 'model', 'active', '{grounded}', true FROM unnest($1::text[]) m`, models)
	d := s.dispatcher(b)
	answer := &answers.Answer{Text: strings.Repeat("the answer of a model ", 60), AnsweredAt: time.Now()}
	s.createRun(b, s.account(b), models, 100, (b.N+4999)/5000)
	began := time.Now()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				got, err := d.Claim(b.Context(), &jobs.ClaimRequest{Worker: store.NewID(), Limit: 100, Lease: time.Minute})
				if err != nil {
					b.Error(err)
				}
				if len(got) == 0 {
					return
				}
				settlements := make([]jobs.Settlement, len(got))
				for i, j := range got {
					settlements[i] = jobs.Settlement{Key: j.Key, Attempt: j.Attempt, Outcome: jobs.Completed, Answer: answer}
				}
				if _, err := d.Settle(b.Context(), jobs.Reporter{}, settlements); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64((b.N+4999)/5000*5000)/time.Since(began).Seconds(), "jobs/s")
}
