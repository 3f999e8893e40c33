package gateway

import (
	"bytes"
	"slices"
	"strconv"

	"aiv/gateway/wire"
	"aiv/insights/visibility"
	"aiv/store"
)

// metricsDocument is the response of GET /v1/metrics. appendMetricsRow encodes Data, the last member.
type metricsDocument struct {
	From          *string          `json:"from"`
	To            *string          `json:"to"`
	TimeZone      string           `json:"time_zone"`
	Versions      []string         `json:"methodology_versions"` // of the runs
	BrandRevision int64            `json:"brand_revision"`
	Answers       answerCounts     `json:"answers"`
	Questions     int              `json:"questions"` // with ok answers
	Runs          int              `json:"runs"`      // with ok answers
	Models        []servedDocument `json:"models"`    // which versions of each model answered
	Complete      bool             `json:"complete"`
	AsOf          string           `json:"as_of"` // when the numbers were read
	Data          []metricsRow     `json:"data"`
}

// answerCounts counts jobs by status. Frozen answers are also counted as ok.
type answerCounts struct {
	OK         int64 `json:"ok"`
	Empty      int64 `json:"empty"` // completed, without visible prose; not counted in rates
	Truncated  int64 `json:"truncated"`
	Failed     int64 `json:"failed"`
	Canceled   int64 `json:"canceled"`
	Pending    int64 `json:"pending"`    // queued or running
	Recounting int64 `json:"recounting"` // completed, and not counted at the present revision of the brands
	Frozen     int64 `json:"frozen"`     // counted at an older revision; the answers were deleted since
}

func newAnswerCounts(a visibility.Answers) answerCounts {
	return answerCounts{a.OK, a.Empty, a.Truncated, a.Failed, a.Canceled, a.Pending, a.Recounting, a.Frozen}
}

// servedDocument counts the answers of a model that one version of it gave.
type servedDocument struct {
	ModelID      string  `json:"model_id"`
	ModelVersion *string `json:"model_version"` // null: the provider did not report it
	Answers      int64   `json:"answers"`
}

// metricsRow has the numbers of one brand in one group. It only describes what appendMetricsRow appends.
type metricsRow struct {
	Group         groupDocument `json:"group"`
	BrandID       string        `json:"brand_id"`
	BrandName     string        `json:"brand_name"`
	Kind          string        `json:"kind"`
	Mentions      int64         `json:"mentions"` // occurrences in all ok answers of the group
	MentionRate   rateDocument  `json:"mention_rate"`
	CitationRate  rateDocument  `json:"citation_rate"`
	FirstRate     rateDocument  `json:"first_rate"` // the rate of being the first brand in the answers that mention it
	ShareOfVoice  shareDocument `json:"share_of_voice"`
	CitationShare shareDocument `json:"citation_share"`
	Position      shareDocument `json:"position"` // the mean position in the answers that mention the brand
}

// groupDocument has the members that the rows are grouped by. It only describes what appendGroup appends.
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

// rateDocument is a share of answers with its 95 % interval. Value is null, and Reason says why, without answers to
// count.
type rateDocument struct {
	Value     *visibility.Decimal `json:"value"`
	Count     int64               `json:"count"`
	Of        int64               `json:"of"`  // Value is Count / Of, both numbers of answers
	Low       *visibility.Decimal `json:"low"` // null with the value
	High      *visibility.Decimal `json:"high"`
	Effective *visibility.Decimal `json:"effective"`  // the effective sample size
	LowSample bool                `json:"low_sample"` // the interval is wider than 0.3, or there is none
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

// textOrNil returns nil for "", which is encoded as null.
func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// metricsJSON returns metrics as JSON: a metricsDocument. The rows have the cells that the call of a tool names.
func metricsJSON(q *metricsQuery, m *visibility.Metrics, c *toolCall) []byte {
	// The rows are appended to the head without its end: encoding/json would take most of the time for up to 10,000
	// rows.
	head := wire.Encode(newMetricsDocument(q, m))
	b := append(make([]byte, 0, len(head)+1024*len(m.Rows)), bytes.TrimSuffix(head, []byte("]}"))...)
	var group []byte
	for i := range m.Rows {
		row := &m.Rows[i]
		// The rows of a group follow each other, so its members are encoded once.
		if i == 0 || !slices.Equal(row.Group, m.Rows[i-1].Group) {
			group = appendGroup(group[:0], q.GroupBy, row.Group)
		}
		b = appendMetricsRow(wire.Item(b), group, row, c)
	}
	c.setRows(len(m.Rows))
	return append(b, "]}"...)
}

// newMetricsDocument returns a document without rows.
func newMetricsDocument(q *metricsQuery, m *visibility.Metrics) metricsDocument {
	d := metricsDocument{
		From: store.FormatTimeOrNil(q.From), To: store.FormatTimeOrNil(q.To), TimeZone: q.zoneName,
		Versions: append([]string{}, m.Versions...), BrandRevision: m.Revision, Answers: newAnswerCounts(m.Answers),
		Questions: m.Questions, Runs: m.Runs, Models: []servedDocument{},
		Complete: m.Answers.Complete(), AsOf: store.FormatTime(m.AsOf), Data: []metricsRow{},
	}
	for _, s := range m.Models {
		d.Models = append(d.Models, servedDocument{s.Model, s.Version, s.Answers})
	}
	return d
}

// appendGroup appends a groupDocument, with the members in the order of group_by.
func appendGroup(b []byte, by []visibility.Dimension, values []string) []byte {
	b = append(b, '{')
	for i, d := range by {
		// The value of ByBranded is true or false, which is JSON already.
		if d == visibility.ByBranded {
			b = append(wire.Member(b, d.Member()), values[i]...)
		} else {
			b = wire.Text(b, d.Member(), values[i])
		}
	}
	return append(b, '}')
}

// appendMetricsRow appends a metricsRow. TestOpenAPIAndGoldenFiles validates it by its schema.
func appendMetricsRow(b, group []byte, row *visibility.Row, c *toolCall) []byte {
	b = append(wire.Member(append(b, '{'), "group"), group...)
	b = wire.ID(b, "brand_id", "brand", row.Brand.ID)
	b = wire.Text(b, "brand_name", row.Brand.Name)
	b = wire.Text(b, "kind", row.Brand.Kind)
	b = strconv.AppendInt(wire.Member(b, "mentions"), row.Mentions, 10)
	b = appendRate(b, "mention_rate", &row.MentionRate, c)
	b = appendRate(b, "citation_rate", &row.CitationRate, c)
	b = appendRate(b, "first_rate", &row.FirstRate, c)
	b = appendShare(b, "share_of_voice", &row.ShareOfVoice, c)
	b = appendShare(b, "citation_share", &row.CitationShare, c)
	return append(appendShare(b, "position", &row.Position, c), '}')
}

// appendRate appends a cell that is a rateDocument.
func appendRate(b []byte, name string, r *visibility.Rate, c *toolCall) []byte {
	if !c.shows(name) {
		return b
	}
	b = appendParts(append(wire.Member(b, name), '{'), &r.Share)
	b = appendNumber(b, "low", r.Low)
	b = appendNumber(b, "high", r.High)
	b = appendNumber(b, "effective", r.Effective)
	b = strconv.AppendBool(wire.Member(b, "low_sample"), r.LowSample)
	return append(wire.TextOrNull(b, "reason", textOrNil(r.Reason)), '}')
}

// appendShare appends a cell that is a shareDocument.
func appendShare(b []byte, name string, s *visibility.Share, c *toolCall) []byte {
	if !c.shows(name) {
		return b
	}
	b = appendParts(append(wire.Member(b, name), '{'), s)
	return append(wire.TextOrNull(b, "reason", textOrNil(s.Reason)), '}')
}

func appendParts(b []byte, s *visibility.Share) []byte {
	b = appendNumber(b, "value", s.Value)
	b = strconv.AppendInt(wire.Member(b, "count"), s.Count, 10)
	return strconv.AppendInt(wire.Member(b, "of"), s.Of, 10)
}

// appendNumber appends a number, or null for nil.
func appendNumber(b []byte, name string, d *visibility.Decimal) []byte {
	if b = wire.Member(b, name); d == nil {
		return append(b, "null"...)
	}
	return d.Append(b)
}
