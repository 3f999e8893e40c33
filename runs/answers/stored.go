package answers

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"aiv/store"
	"aiv/store/strictjson"
)

// AppendStored appends the stored form of the answer: a JSON object. Its members searched, truncated and usage are left
// out if they are null, false and null. So answers that were stored before these members existed have the same form,
// and need no migration.
func (a *Answer) AppendStored(b []byte) []byte {
	b = strictjson.AppendString(append(b, `{"text":`...), a.Text)
	b = append(b, `,"citations":[`...)
	for i := range a.Citations {
		c := &a.Citations[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"position":`...), int64(c.Position), 10)
		b = strictjson.AppendString(append(b, `,"url":`...), c.URL)
		b = strictjson.AppendString(append(b, `,"domain":`...), c.Domain)
		b = append(appendTextOrNull(append(b, `,"title":`...), c.Title), '}')
	}
	b = append(b, `],"search_queries":[`...)
	for i, q := range a.SearchQueries {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendString(b, q)
	}
	b = appendTextOrNull(append(b, `],"model_version":`...), a.ModelVersion)
	b = append(store.AppendTime(append(b, `,"answered_at":"`...), a.AnsweredAt), '"')
	if a.Searched != nil {
		b = strconv.AppendBool(append(b, `,"searched":`...), *a.Searched)
	}
	if a.Truncated {
		b = append(b, `,"truncated":true`...)
	}
	if u := a.Usage; u != nil {
		b = appendIntOrNull(append(b, `,"usage":{"input_tokens":`...), u.InputTokens)
		b = appendIntOrNull(append(b, `,"output_tokens":`...), u.OutputTokens)
		b = append(appendIntOrNull(append(b, `,"searches":`...), u.Searches), '}')
	}
	return append(b, '}')
}

func appendTextOrNull(b []byte, s *string) []byte {
	if s == nil {
		return append(b, "null"...)
	}
	return strictjson.AppendString(b, *s)
}

func appendIntOrNull(b []byte, n *int64) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, *n, 10)
}

// storedLimits exceed every answer within the bounds. An answer has at most about 560 values.
var storedLimits = strictjson.Limits{Depth: 16, Values: 10_000}

// Decode returns the answer whose stored form is given. Members that are missing are read as the zero value, and
// members that a later version may have added are ignored. The texts of the answer share the memory of stored.
func Decode(stored string) (*Answer, error) {
	v, err := strictjson.Parse(stored, storedLimits)
	if err != nil {
		return nil, fmt.Errorf("a stored answer is not valid: %w", err)
	}
	if v.Kind != strictjson.KindObject {
		return nil, errors.New("a stored answer is not an object")
	}
	a := &Answer{}
	// Members of other names come from a later version.
	for i := range v.Members {
		m := &v.Members[i].Value
		switch v.Members[i].Name {
		case "text":
			a.Text = m.Text
		case "citations":
			a.Citations = make([]Citation, len(m.Items))
			for i := range m.Items {
				a.Citations[i] = decodeCitation(i, &m.Items[i])
			}
		case "search_queries":
			a.SearchQueries = make([]string, len(m.Items))
			for i := range m.Items {
				a.SearchQueries[i] = m.Items[i].Text
			}
		case "model_version":
			a.ModelVersion = textOrNil(m)
		case "answered_at":
			// The error is returned at the end, with the rest of the answer.
			a.AnsweredAt, err = decodeTime(m)
		case "searched":
			if m.Kind == strictjson.KindBool {
				a.Searched = new(m.Text == "true")
			}
		case "truncated":
			a.Truncated = m.Text == "true"
		case "usage":
			a.Usage = decodeUsage(m)
		}
	}
	return a, err
}

// decodeCitation reads a citation. Its position is its place in the list, whatever is stored.
func decodeCitation(i int, v *strictjson.Value) Citation {
	c := Citation{Position: i + 1}
	for i := range v.Members {
		m := &v.Members[i].Value
		switch v.Members[i].Name {
		case "url":
			c.URL = m.Text
		case "domain":
			c.Domain = m.Text
		case "title":
			c.Title = textOrNil(m)
		}
	}
	return c
}

func decodeTime(v *strictjson.Value) (time.Time, error) {
	t, err := store.ParseTime(v.Text)
	if err != nil {
		return t, fmt.Errorf("the time of a stored answer is not valid: %w", err)
	}
	return t.UTC(), nil
}

// decodeUsage returns nil for null. Numbers that are null stay nil.
func decodeUsage(v *strictjson.Value) *Usage {
	if v.Kind != strictjson.KindObject {
		return nil
	}
	u := &Usage{}
	for i := range v.Members {
		n, err := strconv.ParseInt(v.Members[i].Value.Text, 10, 64)
		if err != nil {
			continue // null
		}
		switch v.Members[i].Name {
		case "input_tokens":
			u.InputTokens = &n
		case "output_tokens":
			u.OutputTokens = &n
		case "searches":
			u.Searches = &n
		}
	}
	return u
}

func textOrNil(v *strictjson.Value) *string {
	if v.Kind == strictjson.KindNull {
		return nil
	}
	return new(v.Text)
}
