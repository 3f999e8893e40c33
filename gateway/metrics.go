package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/wire"
	"aiv/insights/visibility"
	"aiv/store"
)

// metricsDocument is the response of GET /v1/metrics.
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

// answerCounts counts jobs by status; frozen ones are ok ones, too.
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

// metricsRow has the numbers of one brand in one group. Tools leave out cells; the route never does.
type metricsRow struct {
	Group         json.RawMessage `json:"group"`
	BrandID       string          `json:"brand_id"`
	BrandName     string          `json:"brand_name"`
	Kind          string          `json:"kind"`
	Mentions      int64           `json:"mentions"`
	MentionRate   rateDocument    `json:"mention_rate,omitzero"`
	CitationRate  rateDocument    `json:"citation_rate,omitzero"`
	FirstRate     rateDocument    `json:"first_rate,omitzero"`
	ShareOfVoice  shareDocument   `json:"share_of_voice,omitzero"`
	CitationShare shareDocument   `json:"citation_share,omitzero"`
	Position      shareDocument   `json:"position,omitzero"`
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

// answerFilters are the parameters that select answers, of all routes of the measurement, besides the time.
func answerFilters[F any](at func(*F) *visibility.Filter) []filter[F] {
	return []filter[F]{
		formFilter("model_id", catalogID, func(f *F) *string { return &at(f).Model }),
		formFilter("question_id", catalogID, func(f *F) *string { return &at(f).Question }),
		textFilter("topic", func(f *F) *string { return &at(f).Topic }),
		textFilter("tag", func(f *F) *string { return &at(f).Tag }),
		formFilter("country", country, func(f *F) *string { return &at(f).Country }),
		formFilter("language", language, func(f *F) *string { return &at(f).Language }),
		formFilter("measurement_type", measurementType, func(f *F) *string { return &at(f).MeasurementType }),
		boolFilter("branded", func(f *F) **bool { return &at(f).Branded }),
	}
}

// boolFilter accepts true and false.
func boolFilter[F any](name string, at func(*F) **bool) filter[F] {
	return filter[F]{name, "true or false", func(f *F, v string) bool {
		*at(f) = new(v == "true")
		return v == "true" || v == "false"
	}}
}

// brandFilter accepts the id of a brand.
func brandFilter[F any](at func(*F) **store.ID) filter[F] {
	return filter[F]{"brand_id", "the id of a brand", func(f *F, v string) bool {
		id, err := store.ParseID("brand", v)
		*at(f) = &id
		return err == nil
	}}
}

// A window is a time zone and times that are dates in it, or RFC 3339.
type window struct {
	zoneName string
	zone     *time.Location
	times    map[string]string // by parameter
}

// zoneFilter accepts the name of a time zone.
func zoneFilter[F any](at func(*F) *window) filter[F] {
	return filter[F]{"time_zone", "the name of a time zone in IANA's database, such as Europe/Rome", func(f *F, v string) bool {
		zone, err := loadZone(v)
		at(f).zoneName, at(f).zone = v, zone
		return err == nil
	}}
}

// loadZone refuses what time.LoadLocation accepts besides names of the database.
func loadZone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	return time.LoadLocation(name)
}

// momentFilter accepts a date or a time. Its value is read when the time zone is known.
func momentFilter[F any](name string, at func(*F) *window) filter[F] {
	return filter[F]{name, "a date such as 2026-03-01, or an RFC 3339 time", func(f *F, v string) bool {
		w := at(f)
		if w.times == nil {
			w.times = make(map[string]string)
		}
		w.times[name] = v
		_, err := moment(v, time.UTC)
		return err == nil
	}}
}

// moment reads a date in a time zone, which is its first instant, or a time.
func moment(v string, zone *time.Location) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, v); err == nil {
		return visibility.StartOfDay(day.Year(), day.Month(), day.Day(), zone), nil
	}
	t, err := store.ParseTime(v)
	if rest := t.Nanosecond() % 1000; rest > 0 { // see timeFilter
		t = t.Add(time.Duration(1000 - rest))
	}
	return t, err
}

// at returns the time of a parameter, or nil if it was not given.
func (w *window) at(name string) *time.Time {
	v, given := w.times[name]
	if !given {
		return nil
	}
	t, err := moment(v, w.zone)
	if err != nil {
		return nil // momentFilter has reported it
	}
	return &t
}

// span returns the times of two parameters, and reports a fault if the first is not before the second.
func (w *window) span(from, to string, f *problem.Faults) (a, b *time.Time) {
	a, b = w.at(from), w.at(to)
	if a != nil && b != nil && !a.Before(*b) {
		f.AddParameter(from, "must be before "+to)
	}
	return a, b
}

// metricsQuery is what the parameters of GET /v1/metrics say.
type metricsQuery struct {
	visibility.Query
	window
}

func (q *metricsQuery) filter() *visibility.Filter { return &q.Filter }

func (q *metricsQuery) ofWindow() *window { return &q.window }

var metricsFilters = slices.Concat([]filter[metricsQuery]{
	momentFilter("from", (*metricsQuery).ofWindow),
	momentFilter("to", (*metricsQuery).ofWindow),
	zoneFilter((*metricsQuery).ofWindow),
	runFilter(func(q *metricsQuery) **store.ID { return &q.Run }),
}, answerFilters((*metricsQuery).filter), []filter[metricsQuery]{
	brandFilter(func(q *metricsQuery) **store.ID { return &q.Brand }),
	{"group_by", "a comma-separated list of at most 3 of " + joinDimensions() + ", each once, and of run, day, week and month at most one",
		(*metricsQuery).setGroups},
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

// readFilters reads the parameters of a route.
func readFilters[F any](x *exchange, filters []filter[F], to *F) problem.Faults {
	faults := x.params.Faults(x.route.input.query)
	for _, p := range x.params {
		if p.Fault != "" {
			continue
		}
		if i := slices.IndexFunc(filters, func(f filter[F]) bool { return f.name == p.Name }); i >= 0 {
			if wrong := filters[i].read(to, p.Value); wrong != "" {
				faults.AddParameter(p.Name, wrong)
			}
		}
	}
	return faults
}

func namesOf[F any](filters []filter[F]) (names []string) {
	for i := range filters {
		names = append(names, filters[i].name)
	}
	return names
}

// invalidParameters reports faults with their number.
func invalidParameters(faults problem.Faults) error {
	if len(faults) == 1 {
		return &problem.Problem{Code: problem.InvalidParameter, Detail: "1 parameter is not valid.", Errors: faults}
	}
	return &problem.Problem{Code: problem.InvalidParameter, Detail: fmt.Sprintf("%d parameters are not valid.", len(faults)), Errors: faults}
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
		d := newMetricsDocument(&q, m)
		x.tool.chooseCells(d.Data)
		return page{body: wire.Encode(d)}, nil
	})
}

// measure sends what read returns. A read of the measurement takes a connection for reads, and has as long as they have.
func (g *Gateway) measure(x *exchange, r *http.Request, read func(context.Context, store.Querier) (page, error)) error {
	var p page
	err := g.inReads(x, r, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, maxMeasureTime)
		defer cancel()
		return g.read(ctx, x.admission.WALPosition, func(ctx context.Context, db store.Querier) (err error) {
			p, err = read(ctx, db)
			return err
		})
	})
	if err != nil {
		return err
	}
	return g.sendPage(x, r, p, "")
}

// maxMeasureTime bounds a read of metrics or sources.
const maxMeasureTime = 2 * time.Second

func newMetricsDocument(q *metricsQuery, m *visibility.Metrics) metricsDocument {
	d := metricsDocument{
		From: store.FormatTimeOrNil(q.From), To: store.FormatTimeOrNil(q.To), TimeZone: q.zoneName, Versions: append([]string{}, m.Versions...),
		BrandRevision: m.Revision, Answers: newAnswerCounts(m.Answers), Questions: m.Questions, Runs: m.Runs, Models: []servedDocument{},
		Complete: m.Answers.Complete(), AsOf: store.FormatTime(m.AsOf), Data: make([]metricsRow, 0, len(m.Rows)),
	}
	for _, s := range m.Models {
		d.Models = append(d.Models, servedDocument{s.Model, s.Version, s.Answers})
	}
	var group json.RawMessage
	for i := range m.Rows {
		row := &m.Rows[i]
		if i == 0 || !slices.Equal(row.Group, m.Rows[i-1].Group) {
			group = groupObject(q.GroupBy, row.Group)
		}
		d.Data = append(d.Data, metricsRow{
			Group: group, BrandID: row.Brand.ID.Text("brand"), BrandName: row.Brand.Name, Kind: row.Brand.Kind, Mentions: row.Mentions,
			MentionRate: newRateDocument(&row.MentionRate), CitationRate: newRateDocument(&row.CitationRate),
			FirstRate: newRateDocument(&row.FirstRate), ShareOfVoice: newShareDocument(&row.ShareOfVoice),
			CitationShare: newShareDocument(&row.CitationShare), Position: newShareDocument(&row.Position),
		})
	}
	return d
}

// groupObject returns the member group: a member for each dimension.
func groupObject(by []visibility.Dimension, values []string) json.RawMessage {
	b := []byte{'{'}
	for i, d := range by {
		if d == visibility.ByBranded {
			b = append(wire.Member(b, d.Member()), values[i]...)
		} else {
			b = wire.Text(b, d.Member(), values[i])
		}
	}
	return append(b, '}')
}
