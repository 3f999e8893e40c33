package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/gateway/wire"
	"aiv/insights/visibility"
	"aiv/store"
)

// sourcesDocument is the response of GET /v1/sources.
type sourcesDocument struct {
	Data       []sourceDocument `json:"data"`
	HasMore    bool             `json:"has_more"`
	NextCursor *string          `json:"next_cursor"`
	Answers    answerCounts     `json:"answers"`
	Complete   bool             `json:"complete"`
}

// sourceDocument is a host with an owner, or a page.
type sourceDocument struct {
	Host          string        `json:"host"`
	URL           *string       `json:"url"`      // null: the row is a host
	Owner         string        `json:"owner"`    // own, competitor or other
	BrandID       *string       `json:"brand_id"` // of the owner; null: other
	Answers       int64         `json:"answers"`  // that cite it
	CitationShare shareDocument `json:"citation_share"`
	Models        int           `json:"models"` // whose answers cite it
	Questions     int           `json:"questions"`
	FirstCitedAt  string        `json:"first_cited_at"` // the creation of the first run that cites it
	LastCitedAt   string        `json:"last_cited_at"`
}

// sourcesQuery is what the parameters of GET /v1/sources say.
type sourcesQuery struct {
	visibility.SourceQuery
	window
	selected store.Page
}

func (q *sourcesQuery) filter() *visibility.Filter { return &q.Filter }

var sourcesFilters = slices.Concat([]filter[sourcesQuery]{
	momentFilter("from", (*sourcesQuery).ofWindow),
	momentFilter("to", (*sourcesQuery).ofWindow),
	zoneFilter((*sourcesQuery).ofWindow),
	runFilter("run_id", func(q *sourcesQuery) **store.ID { return &q.Run }),
}, answerFilters((*sourcesQuery).filter), []filter[sourcesQuery]{
	brandFilter(func(q *sourcesQuery) **store.ID { return &q.Brand }),
	// The default level is domain.
	{"level", "domain or url", func(q *sourcesQuery, v string) bool {
		q.ByPage = v == "url"
		return v == "domain" || v == "url"
	}},
	wordFilter("owner", []string{visibility.OwnerOwn, visibility.OwnerCompetitor, visibility.OwnerOther},
		func(q *sourcesQuery) *string { return &q.Owner }),
	{"gap", "true or false", func(q *sourcesQuery, v string) bool {
		q.Gap = v == "true"
		return v == "true" || v == "false"
	}},
})

// maxPageDays bounds the window of rows that are pages.
const maxPageDays = 92

// isWide reports whether a window is longer than maxPageDays, of 24 hours or of its time zone.
func (w *window) isWide(from, to *time.Time) bool {
	if from == nil || to == nil {
		return false
	}
	return to.After(from.Add(maxPageDays*24*time.Hour)) && to.After(from.In(w.zone).AddDate(0, 0, maxPageDays))
}

// readSources responds with a page of the sources that answers cite. All rows are computed for each page, because rows
// are ordered by how often they are cited.
func (g *Gateway) readSources(x *exchange, r *http.Request) error {
	q := sourcesQuery{window: window{zoneName: "UTC", zone: time.UTC}, selected: store.Page{Limit: defaultLimit}}
	faults := readFilters(x, sourcesFilters, &q)
	// readFilters ignores limit and cursor, which are not among sourcesFilters.
	for _, p := range x.params {
		if p.Fault != "" {
			continue
		}
		if wrong := g.readPosition(x, p, true, &q.selected); wrong != "" {
			faults.AddParameter(p.Name, wrong)
		}
	}
	// After all parameters: the zone may follow the dates.
	q.From, q.To = q.span("from", "to", &faults)
	if q.ByPage && !x.given("run_id") && (!x.given("from") || !x.given("to") || q.isWide(q.From, q.To)) {
		faults.AddParameter("level", fmt.Sprintf("url requires run_id, or from and to that are at most %d days apart", maxPageDays))
	}
	if len(faults) > 0 {
		return invalidParameters(faults)
	}
	return g.measure(x, r, func(ctx context.Context, db store.Querier) (page, error) {
		found, err := visibility.ReadSources(ctx, db, x.credential().AccountID, &q.SourceQuery)
		if err != nil {
			return page{}, err
		}
		return g.sourcesPage(x, &q, found)
	})
}

// sourcesPage returns the rows after the cursor, up to the limit or, for a tool, up to the size of its result.
func (g *Gateway) sourcesPage(x *exchange, q *sourcesQuery, found *visibility.Sources) (page, error) {
	rows := rowsAfter(found.Rows, q.selected.After)
	return x.fit(min(len(rows), q.selected.Limit), func(n int) page {
		return g.sourcesPageOf(x, found, rows[:n], n < len(rows))
	})
}

// sourcesPageOf returns the page with these rows. more reports whether further rows follow.
func (g *Gateway) sourcesPageOf(x *exchange, found *visibility.Sources, rows []visibility.SourceRow, more bool) page {
	d := sourcesDocument{
		Data: []sourceDocument{}, HasMore: more, Answers: newAnswerCounts(found.Answers), Complete: found.Answers.Complete(),
	}
	for i := range rows {
		d.Data = append(d.Data, newSourceDocument(&rows[i]))
	}
	p := page{}
	if d.HasMore {
		p.cursor = g.seal(x.bound(), store.Position{Text: sourcePosition(&rows[len(rows)-1])}, true)
		d.NextCursor = &p.cursor
	}
	p.body = wire.Encode(d)
	return p
}

// newSourceDocument returns the wire form of a row. Page keys have no scheme, so https is assumed.
func newSourceDocument(row *visibility.SourceRow) sourceDocument {
	d := sourceDocument{
		Host: row.Host, Owner: row.Owner, BrandID: idOrNull("brand", row.Brand), Answers: row.Answers,
		CitationShare: newShareDocument(&row.CitationShare), Models: row.Models, Questions: row.Questions,
		FirstCitedAt: store.FormatTime(row.First), LastCitedAt: store.FormatTime(row.Last),
	}
	if row.Page != "" {
		d.URL = new("https://" + row.Page)
	}
	return d
}

// sourcePosition identifies a row in a cursor: its answers, and a hash of its other sort keys, which may be long.
func sourcePosition(row *visibility.SourceRow) string {
	brand := ""
	if row.Brand != nil {
		brand = row.Brand.Text("brand")
	}
	// 16 bytes of the hash are enough to tell the rows with equal counts from each other.
	hash := sha256.Sum256([]byte(row.Host + "\n" + row.Page + "\n" + brand))
	return strconv.FormatInt(row.Answers, 10) + " " + hex.EncodeToString(hash[:16])
}

// rowsAfter returns the rows after the row of a cursor. If that row has moved, it returns the rows with fewer answers.
func rowsAfter(rows []visibility.SourceRow, after *store.Position) []visibility.SourceRow {
	if after == nil {
		return rows
	}
	count, _, _ := strings.Cut(after.Text, " ")
	answers, _ := strconv.ParseInt(count, 10, 64) // the cursor is authentic
	for i := range rows {
		switch {
		// Rows are in descending order of answers. The row of the cursor is not among the rows before this one.
		case rows[i].Answers < answers:
			return rows[i:]
		case rows[i].Answers == answers && sourcePosition(&rows[i]) == after.Text:
			return rows[i+1:]
		}
	}
	return nil
}
