package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// BenchmarkWork claims and settles the jobs of one run, 100 at a time by 4 callers, each with an answer of 1.3 KiB.
func BenchmarkWork(b *testing.B) {
	s := ownSite(b) // it adds models
	var models []string
	for n := range 50 {
		models = append(models, fmt.Sprint("m1-", n))
	}
	s.exec(`INSERT INTO models (id, name, provider_code, provider_model, status, measurement_types, grounded_search)
		SELECT m, 'Model', 'p1', 'model', 'active', '{grounded}', true FROM unnest($1::text[]) m`, models)
	text := strings.Repeat("the answer of a model ", 60)
	repetitions := (b.N + 4999) / 5000
	s.orderOf(s.account(), strings.Join(models, " "), 100, repetitions)
	began := time.Now()
	storetest.AtOnce(4, func(int) {
		for {
			got, err := s.d.Claim(b.Context(), request(ClaimRequest{Limit: 100}))
			if err != nil {
				b.Error(err)
			}
			if len(got) == 0 {
				return
			}
			settlements := make([]Settlement, len(got))
			for i, j := range got {
				settlements[i] = settlement(j, Completed)
				settlements[i].Answer.Text = text
			}
			if _, err := s.d.Settle(b.Context(), Reporter{}, settlements); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(5000*repetitions)/time.Since(began).Seconds(), "jobs/s")
}
