package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"aiv/gateway/request"
	"aiv/insights/visibility"
	"aiv/store"
)

// metricsQuery is what the parameters of GET /v1/metrics say.
type metricsQuery struct {
	visibility.Query // its Zone, From and To are set from the window
	window
}

func (q *metricsQuery) filter() *visibility.Filter { return &q.Filter }

var metricsFilters = slices.Concat([]filter[metricsQuery]{
	momentFilter("from", (*metricsQuery).ofWindow),
	momentFilter("to", (*metricsQuery).ofWindow),
	zoneFilter((*metricsQuery).ofWindow),
	runFilter("run_id", func(q *metricsQuery) **store.ID { return &q.Run }),
}, answerFilters((*metricsQuery).filter), []filter[metricsQuery]{
	brandFilter(func(q *metricsQuery) **store.ID { return &q.Brand }),
	{"group_by", "a comma-separated list of at most 3 of " + joinDimensions() +
		", each once, and of run, day, week and month at most one", (*metricsQuery).setGroups},
})

func joinDimensions() string {
	var names []string
	for _, d := range visibility.Dimensions {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}

// setGroups reads group_by. The members of each group in the response have the same order (appendGroup).
func (q *metricsQuery) setGroups(v string) bool {
	q.GroupBy = nil
	exclusive := 0
	for name := range strings.SplitSeq(v, ",") {
		d := visibility.Dimension(name)
		if !slices.Contains(visibility.Dimensions, d) || slices.Contains(q.GroupBy, d) {
			return false
		}
		if d == visibility.ByRun || d.OfTime() {
			exclusive++
		}
		q.GroupBy = append(q.GroupBy, d)
	}
	return len(q.GroupBy) <= 3 && exclusive <= 1
}

// readMetrics responds with the metrics of brands, as JSON or CSV.
func (g *Gateway) readMetrics(x *exchange, r *http.Request) error {
	q := metricsQuery{window: window{zoneName: "UTC", zone: time.UTC}}
	faults := readFilters(x, metricsFilters, &q)
	// After all parameters, because time_zone may follow from and to in the query string.
	q.From, q.To = q.span("from", "to", &faults)
	if q.Zone = q.zone; len(faults) > 0 {
		return invalidParameters(faults)
	}
	return g.measure(x, r, func(ctx context.Context, db store.Querier) (page, error) {
		m, err := visibility.ReadMetrics(ctx, db, x.credential().AccountID, &q.Query)
		if err != nil {
			return page{}, err
		}
		// The same address has two representations, JSON and CSV.
		x.set("Vary", "Accept")
		if request.PrefersCSV(r.Header) {
			return page{body: metricsCSV(&q, m), mediaType: csvType}, nil
		}
		return page{body: metricsJSON(&q, m, x.tool)}, nil
	})
}
