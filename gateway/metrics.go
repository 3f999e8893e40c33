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

// metricsDocument is the response of GET /v1/metrics. appendMetricsRow encodes Data, the last member.
type metricsDocument struct {
	From          *string          `json:"from"`
	To            *string          `json:"to"`
	TimeZone      string           `json:"time_zone"`
	Versions      []string         `json:"methodology_versions"`
	BrandRevision int64            `json:"brand_revision"`
	Answers       answerCounts     `json:"answers"`
	Questions     int              `json:"questions"`
	Runs          int              `json:"runs"`
	Models        []servedDocument `json:"models"`
	Complete      bool             `json:"complete"`
	AsOf          string           `json:"as_of"`
	Data          []metricsRow     `json:"data"`
}

// answerCounts counts jobs by status. Frozen answers are also counted as ok.
type answerCounts struct {
	OK         int64 `json:"ok"`
	Empty      int64 `json:"empty"`
	Truncated  int64 `json:"truncated"`
	Failed     int64 `json:"failed"`
	Canceled   int64 `json:"canceled"`
	Pending    int64 `json:"pending"`
	Recounting int64 `json:"recounting"`
	Frozen     int64 `json:"frozen"`
}

func newAnswerCounts(a visibility.Answers) answerCounts {
	return answerCounts{a.OK, a.Empty, a.Truncated, a.Failed, a.Canceled, a.Pending, a.Recounting, a.Frozen}
}

// servedDocument counts the answers of a model that one version of it gave.
type servedDocument struct {
	ModelID      string  `json:"model_id"`
	ModelVersion *string `json:"model_version"`
	Answers      int64   `json:"answers"`
}

// metricsRow has the numbers of one brand in one group.
type metricsRow struct {
	Group         groupDocument `json:"group"`
	BrandID       string        `json:"brand_id"`
	BrandName     string        `json:"brand_name"`
	Kind          string        `json:"kind"`
	Mentions      int64         `json:"mentions"`
	MentionRate   rateDocument  `json:"mention_rate"`
	CitationRate  rateDocument  `json:"citation_rate"`
	FirstRate     rateDocument  `json:"first_rate"`
	ShareOfVoice  shareDocument `json:"share_of_voice"`
	CitationShare shareDocument `json:"citation_share"`
	Position      shareDocument `json:"position"`
}

// groupDocument has the members that the rows are grouped by.
type groupDocument struct {
	ModelID    *string `json:"model_id,omitempty"`
	QuestionID *string `json:"question_id,omitempty"`
	Topic      *string `json:"topic,omitempty"`
	Country    *string `json:"country,omitempty"`
	Language   *string `json:"language,omitempty"`
	Branded    *bool   `json:"branded,omitempty"`
	RunID      *string `json:"run_id,omitempty"`
	Day        *string `json:"day,omitempty"`
	Week       *string `json:"week,omitempty"`
	Month      *string `json:"month,omitempty"`
}

// rateDocument is a share of answers with its 95 % interval.
type rateDocument struct {
	Value     *visibility.Decimal `json:"value"`
	Count     int64               `json:"count"`
	Of        int64               `json:"of"`
	Low       *visibility.Decimal `json:"low"`
	High      *visibility.Decimal `json:"high"`
	Effective *visibility.Decimal `json:"effective"`
	LowSample bool                `json:"low_sample"`
	Reason    *string             `json:"reason"`
}

// shareDocument is count / of. It has no interval.
type shareDocument struct {
	Value  *visibility.Decimal `json:"value"`
	Count  int64               `json:"count"`
	Of     int64               `json:"of"`
	Reason *string             `json:"reason"`
}

func newRateDocument(r *visibility.Rate) rateDocument {
	return rateDocument{r.Value, r.Count, r.Of, r.Low, r.High, r.Effective, r.LowSample, textOrNil(r.Reason)}
}

func newShareDocument(s *visibility.Share) shareDocument {
	return shareDocument{s.Value, s.Count, s.Of, textOrNil(s.Reason)}
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// metricsQuery is what the parameters of GET /v1/metrics say.
type metricsQuery struct {
	visibility.Query
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
	q.From, q.To = q.span("from", "to", &faults)
	if q.Zone = q.zone; len(faults) > 0 {
		return invalidParameters(faults)
	}
	return g.measure(x, r, func(ctx context.Context, db store.Querier) (page, error) {
		m, err := visibility.ReadMetrics(ctx, db, x.credential().AccountID, &q.Query)
		if err != nil {
			return page{}, err
		}
		x.set("Vary", "Accept")
		if request.PrefersCSV(r.Header) {
			return page{body: metricsCSV(&q, m), mediaType: csvType}, nil
		}
		return page{body: metricsJSON(&q, m, x.tool)}, nil
	})
}
