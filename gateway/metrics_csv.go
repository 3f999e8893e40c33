package gateway

import (
	"strconv"
	"strings"

	"aiv/insights/visibility"
)

// csvType is the media type of metrics as CSV [RFC 4180].
//
// [RFC 4180]: https://www.rfc-editor.org/rfc/rfc4180
const csvType = "text/csv; charset=utf-8; header=present"

// metricsCSV returns the rows of metrics as CSV: the same rows and numbers as in JSON. Null is an empty field.
func metricsCSV(q *metricsQuery, m *visibility.Metrics) []byte {
	b := make([]byte, 0, 512+256*len(m.Rows))
	var names []string
	// The names in the header have the order in which the fields are appended below.
	for _, d := range q.GroupBy {
		names = append(names, d.Member())
	}
	names = append(names, "brand_id", "brand_name", "kind", "mentions")
	for _, rate := range []string{"mention_rate", "citation_rate", "first_rate"} {
		for _, part := range []string{"value", "count", "of", "low", "high", "effective", "low_sample", "reason"} {
			names = append(names, rate+"_"+part)
		}
	}
	// Shares have no interval.
	for _, share := range []string{"share_of_voice", "citation_share", "position"} {
		for _, part := range []string{"value", "count", "of", "reason"} {
			names = append(names, share+"_"+part)
		}
	}
	b = append(append(b, strings.Join(append(names, "complete"), ",")...), "\r\n"...)
	complete := strconv.FormatBool(m.Answers.Complete())
	for i := range m.Rows {
		row := &m.Rows[i]
		// Up to the kind, a comma follows each field. After that, a comma precedes each field.
		for _, value := range row.Group {
			b = append(appendField(b, value), ',')
		}
		b = append(append(b, row.Brand.ID.Text("brand")...), ',')
		b = append(appendField(b, row.Brand.Name), ',')
		b = append(append(b, row.Brand.Kind...), ',')
		b = strconv.AppendInt(b, row.Mentions, 10)
		for _, r := range []*visibility.Rate{&row.MentionRate, &row.CitationRate, &row.FirstRate} {
			b = appendCounts(b, &r.Share)
			b = appendDecimal(append(b, ','), r.Low)
			b = appendDecimal(append(b, ','), r.High)
			b = appendDecimal(append(b, ','), r.Effective)
			b = strconv.AppendBool(append(b, ','), r.LowSample)
			b = append(append(b, ','), r.Reason...)
		}
		for _, s := range []*visibility.Share{&row.ShareOfVoice, &row.CitationShare, &row.Position} {
			b = append(append(appendCounts(b, s), ','), s.Reason...)
		}
		// The last column repeats in each row what the JSON document has once.
		b = append(append(append(b, ','), complete...), "\r\n"...)
	}
	return b
}

// appendCounts appends the fields value, count and of, each after a comma.
func appendCounts(b []byte, s *visibility.Share) []byte {
	b = appendDecimal(append(b, ','), s.Value)
	b = strconv.AppendInt(append(b, ','), s.Count, 10)
	return strconv.AppendInt(append(b, ','), s.Of, 10)
}

// appendDecimal appends a number, or nothing for nil: an empty field.
func appendDecimal(b []byte, d *visibility.Decimal) []byte {
	if d == nil {
		return b
	}
	return d.Append(b)
}

// appendField appends a text, in quotes where RFC 4180 requires them. Package encoding/csv would change line ends in
// texts.
func appendField(b []byte, text string) []byte {
	if !strings.ContainsAny(text, "\",\r\n") {
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
	return append(b, '"')
}
