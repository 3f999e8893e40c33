package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway/wire"
	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// TestMetricsJSON compares the document that is appended without reflection with that of encoding/json.
func TestMetricsJSON(t *testing.T) {
	number := func(n int) *visibility.Decimal { return new(visibility.Decimal(n)) }
	rate := visibility.Rate{
		Share: visibility.Share{Value: number(3750), Count: 3, Of: 8}, Low: number(0), High: number(10_000),
		Effective: number(27_778),
	}
	none := visibility.Rate{Share: visibility.Share{Reason: visibility.NoSources}, LowSample: true}
	row := func(name string, group ...string) visibility.Row {
		return visibility.Row{
			Group: group, Brand: &brands.Brand{ID: store.NewID(), Name: name, Kind: brands.Competitor}, Mentions: 7,
			MentionRate: rate, CitationRate: none, FirstRate: rate, CitationShare: rate.Share, Position: none.Share,
			ShareOfVoice: visibility.Share{Count: 1, Of: 2, Reason: visibility.NoCompetitors},
		}
	}
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		by   []visibility.Dimension
		rows []visibility.Row
	}{
		{"no rows", nil, nil},
		{"no group", nil, []visibility.Row{row("A"), row("B")}},
		{"texts", []visibility.Dimension{visibility.ByModel, visibility.ByTopic, visibility.ByBranded},
			[]visibility.Row{row("<&>", "m", `"\`, "true"), row("é", "m", `"\`, "true"), row("é", "m", "", "false")}},
		{"ids and days", []visibility.Dimension{visibility.ByQuestion, visibility.ByCountry, visibility.ByDay},
			[]visibility.Row{row("A", "q", "IT", "2026-03-01"), row("A", "q", "IT", "2026-03-02")}},
		{"a run", []visibility.Dimension{visibility.ByLanguage, visibility.ByRun},
			[]visibility.Row{row("A", "it", "run_0")}},
		{"weeks", []visibility.Dimension{visibility.ByWeek}, []visibility.Row{row("A", "2026-03-02")}},
		{"months", []visibility.Dimension{visibility.ByMonth}, []visibility.Row{row("A", "2026-03-01")}},
	} {
		q := &metricsQuery{
			Query:  visibility.Query{Filter: visibility.Filter{From: &from}, GroupBy: tt.by},
			window: window{zoneName: "UTC"},
		}
		m := &visibility.Metrics{
			Versions: []string{"AIVM-1.0"}, Models: []visibility.Served{{Model: "m", Answers: 3}},
			AsOf: from, Rows: tt.rows,
		}
		want := newMetricsDocument(q, m)
		for i := range m.Rows {
			want.Data = append(want.Data, newMetricsRow(q, &m.Rows[i]))
		}
		if diff := cmp.Diff(string(wire.Encode(want)), string(metricsJSON(q, m, nil))); diff != "" {
			t.Errorf("%s (-encoding/json +appended):\n%s", tt.name, diff)
		}
	}
}

func newMetricsRow(q *metricsQuery, row *visibility.Row) metricsRow {
	return metricsRow{
		Group: newGroupDocument(q.GroupBy, row.Group), BrandID: row.Brand.ID.Text("brand"),
		BrandName: row.Brand.Name, Kind: row.Brand.Kind, Mentions: row.Mentions,
		MentionRate: newRateDocument(&row.MentionRate), CitationRate: newRateDocument(&row.CitationRate),
		FirstRate: newRateDocument(&row.FirstRate), ShareOfVoice: newShareDocument(&row.ShareOfVoice),
		CitationShare: newShareDocument(&row.CitationShare), Position: newShareDocument(&row.Position),
	}
}

func newGroupDocument(by []visibility.Dimension, values []string) (d groupDocument) {
	texts := map[visibility.Dimension]**string{
		visibility.ByModel: &d.ModelID, visibility.ByQuestion: &d.QuestionID, visibility.ByTopic: &d.Topic,
		visibility.ByCountry: &d.Country, visibility.ByLanguage: &d.Language, visibility.ByRun: &d.RunID,
		visibility.ByDay: &d.Day, visibility.ByWeek: &d.Week, visibility.ByMonth: &d.Month,
	}
	for i, dimension := range by {
		if dimension == visibility.ByBranded {
			d.Branded = new(values[i] == "true")
		} else {
			*texts[dimension] = &values[i]
		}
	}
	return d
}

// BenchmarkMetricsJSON encodes the metrics of 500 questions and 10 brands.
func BenchmarkMetricsJSON(b *testing.B) {
	number := visibility.Decimal(5123)
	share := visibility.Share{Value: &number, Count: 12345, Of: 23456}
	rate := visibility.Rate{Share: share, Low: &number, High: &number, Effective: &number}
	q := &metricsQuery{window: window{zoneName: "UTC"}}
	q.GroupBy = []visibility.Dimension{visibility.ByQuestion}
	brand, m := &brands.Brand{ID: store.NewID(), Name: "Brand", Kind: brands.Own}, &visibility.Metrics{}
	for i := range 5000 {
		m.Rows = append(m.Rows, visibility.Row{
			Group: []string{fmt.Sprint("question-", i/10)}, Brand: brand, MentionRate: rate, CitationRate: rate,
			FirstRate: rate, ShareOfVoice: share, CitationShare: share, Position: share,
		})
	}
	for b.Loop() {
		b.SetBytes(int64(len(metricsJSON(q, m, nil))))
	}
}
