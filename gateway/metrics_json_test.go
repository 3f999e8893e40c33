package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// TestMetricsJSON: rows have their group and their brand, whatever texts these contain. The golden files show each
// dimension and the cells.
func TestMetricsJSON(t *testing.T) {
	q := &metricsQuery{Query: visibility.Query{GroupBy: []visibility.Dimension{visibility.ByTopic, visibility.ByBranded}}}
	var m visibility.Metrics
	var want []string
	for _, group := range [][]string{{`"\`, "true"}, {"é", "false"}} {
		for _, name := range []string{"<&>", `A "B"`} {
			brand := &brands.Brand{ID: store.NewID(), Name: name, Kind: brands.Competitor}
			m.Rows = append(m.Rows, visibility.Row{Group: group, Brand: brand})
			want = append(want, fmt.Sprintf(`{"group":{"topic":%q,"branded":%s},"brand_id":"%s","brand_name":%q,`,
				group[0], group[1], brand.ID.Text("brand"), name))
		}
	}
	got := string(metricsJSON(q, &m, nil))
	if !json.Valid([]byte(got)) {
		t.Errorf("not JSON: %s", got)
	}
	for _, row := range want {
		if !strings.Contains(got, row) {
			t.Errorf("got %s\nwant a row %s…", got, row)
		}
	}
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
