package visibility_test

import (
	"fmt"
	"testing"

	"aiv/insights/visibility"
	"aiv/store"
)

// The results of reads, in the form in which they are expected.

func describeServed(model, version string, answers int) string {
	if version == "\xff" {
		version = "null"
	}
	return fmt.Sprint(model, " ", version, " ", answers)
}

// readMetrics returns what ReadMetrics returns.
func (s *site) readMetrics(t testing.TB, account store.ID, q *visibility.Query) metricsResult {
	t.Helper()
	got, err := visibility.ReadMetrics(t.Context(), s.pool, account, q)
	must(t, err)
	m := metricsResult{Revision: got.Revision, Answers: got.Answers, Complete: got.Answers.Complete(), Questions: got.Questions, Runs: got.Runs, Versions: got.Versions}
	for _, served := range got.Models {
		version := "\xff"
		if served.Version != nil {
			version = *served.Version
		}
		m.Models = append(m.Models, describeServed(served.Model, version, int(served.Answers)))
	}
	for _, r := range got.Rows {
		m.Rows = append(m.Rows, metricsRow{
			Group: r.Group, Brand: r.Brand.ID.Text("brand"), Name: r.Brand.Name, Kind: r.Brand.Kind, Mentions: r.Mentions,
			MentionRate: numberOf(&r.MentionRate), CitationRate: numberOf(&r.CitationRate), FirstRate: numberOf(&r.FirstRate),
			ShareOfVoice: shareNumber(&r.ShareOfVoice), CitationShare: shareNumber(&r.CitationShare), Position: shareNumber(&r.Position),
		})
	}
	return m
}

func shareNumber(s *visibility.Share) number {
	n := number{Count: s.Count, Of: s.Of, Reason: s.Reason}
	if s.Value != nil {
		n.Value = s.Value.String()
	}
	return n
}

func numberOf(r *visibility.Rate) number {
	n := shareNumber(&r.Share)
	n.LowSample = r.LowSample
	if r.Value != nil {
		n.Effective, n.Low, n.High = r.Effective.String(), float64(*r.Low)/10_000, float64(*r.High)/10_000
	}
	return n
}
