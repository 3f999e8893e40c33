package gateway

import (
	"bytes"
	"slices"
	"strconv"

	"aiv/gateway/wire"
	"aiv/insights/visibility"
	"aiv/store"
)

// metricsJSON returns metrics as JSON: a metricsDocument. The rows have the cells that the call of a tool names.
func metricsJSON(q *metricsQuery, m *visibility.Metrics, c *toolCall) []byte {
	head := wire.Encode(newMetricsDocument(q, m))
	b := append(make([]byte, 0, len(head)+1024*len(m.Rows)), bytes.TrimSuffix(head, []byte("]}"))...)
	var group []byte
	for i := range m.Rows {
		row := &m.Rows[i]
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
