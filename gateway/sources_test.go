package gateway

import (
	"testing"

	"aiv/insights/visibility"
	"aiv/store"
)

// TestRowsAfter: a page of sources follows the last row of the previous one. If that row has moved, the page begins
// where the next smaller number of answers does.
func TestRowsAfter(t *testing.T) {
	brand := store.NewID()
	rows := []visibility.SourceRow{
		{Host: "a.example", Answers: 3},
		{Host: "b.example", Answers: 2, Brand: &brand}, {Host: "b.example", Answers: 2},
		{Host: "c.example", Page: "c.example/x", Answers: 2}, {Host: "d.example", Answers: 1},
	}
	after := func(row visibility.SourceRow) int {
		return len(rows) - len(rowsAfter(rows, &store.Position{Text: sourcePosition(&row)}))
	}
	for i, row := range rows {
		if got := after(row); got != i+1 {
			t.Errorf("after row %d: begins at %d", i, got)
		}
	}
	for _, tt := range []struct {
		row  visibility.SourceRow
		want int
	}{
		{visibility.SourceRow{Host: "z.example", Answers: 9}, 0},
		{visibility.SourceRow{Host: "z.example", Answers: 3}, 1},
		{visibility.SourceRow{Host: "c.example", Page: "c.example/y", Answers: 2}, 4},
		{visibility.SourceRow{Host: "d.example", Answers: 0}, 5},
	} {
		if got := after(tt.row); got != tt.want {
			t.Errorf("after %s with %d answers: begins at %d, want %d", tt.row.Host, tt.row.Answers, got, tt.want)
		}
	}
	if got := rowsAfter(rows, nil); len(got) != len(rows) {
		t.Errorf("the first page has %d rows", len(got))
	}
}
