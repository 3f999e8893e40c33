package gateway

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/store"
)

// TestMetricsCSV: each line has the columns of the header, null is an empty field, and texts are quoted where RFC 4180
// requires it.
func TestMetricsCSV(t *testing.T) {
	q := &metricsQuery{Query: visibility.Query{GroupBy: []visibility.Dimension{visibility.ByTopic, visibility.ByModel}}}
	brand := &brands.Brand{ID: store.NewID(), Name: "A, \"B\"", Kind: brands.Own}
	value := new(visibility.Decimal(5000))
	m := &visibility.Metrics{Answers: visibility.Answers{Pending: 1}, Rows: []visibility.Row{{
		Group: []string{"two\r\nlines", "=1+1"}, Brand: brand, Mentions: 3,
		Position: visibility.Share{Reason: visibility.NoMentions},
		MentionRate: visibility.Rate{
			Share: visibility.Share{Value: value, Count: 1, Of: 2}, Low: value, High: value, Effective: value, LowSample: true,
		},
	}}}
	text := string(metricsCSV(q, m))
	for _, part := range []string{
		"topic,model_id,brand_id,brand_name,kind,mentions,mention_rate_value,",
		"\r\n\"two\r\nlines\",=1+1," + brand.ID.Text("brand") + `,"A, ""B""",own,3,0.5,1,2,0.5,0.5,0.5,true,,`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("got %q, want %q in it", text, part)
		}
	}
	lines, err := csv.NewReader(strings.NewReader(text)).ReadAll() // fails if a line has another number of fields
	if err != nil {
		t.Fatal(err)
	}
	const columns = 2 + 4 + 3*8 + 3*4 + 1
	if len(lines) != 2 || len(lines[0]) != columns {
		t.Fatalf("%d lines of %d columns", len(lines), len(lines[0]))
	}
	if diff := cmp.Diff([]string{"", "0", "0", "no_mentions", "false"}, lines[1][columns-5:]); diff != "" {
		t.Errorf("the last fields (-want +got):\n%s", diff)
	}
}
