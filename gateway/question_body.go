package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"aiv/catalog"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/store/strictjson"
)

// Bounds of a question that a customer creates.
const (
	maxQuestionText = 2000 // characters
	maxQuestionTags = 20
)

// readNewQuestion reads the body of POST /v1/catalog/questions.
func readNewQuestion(x *exchange, r *http.Request) (q catalog.Question, err error) {
	err = readQuestionBody(x, r, []string{"text", "language", "country", "topic", "tags"}, nil, func(o request.Object) {
		q.Text = readText(o, "text", maxQuestionText)
		// An empty text has a fault of its length already.
		if q.Text != "" && !strings.ContainsFunc(q.Text, isVisible) {
			o.Fault("text", "must not be blank")
		}
		q.Language = o.Matching("language", language.form(), language.want)
		q.Country = o.Matching("country", country.form(), country.want)
		q.Topic = readText(o, "topic", catalog.MaxFilterable)
		q.Tags = readTags(o)
	})
	return q, err
}

// isVisible reports whether a character can be seen. White space cannot, nor can control and format characters such as
// U+200B, so a text of them asks nothing.
func isVisible(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) }

// readQuestionChange reads the body of PATCH /v1/catalog/questions/{id}.
func readQuestionChange(x *exchange, r *http.Request) (c catalog.QuestionChange, err error) {
	err = readQuestionBody(x, r, nil, []string{"topic", "tags", "status"}, func(o request.Object) {
		if o.Member("topic") != nil {
			c.Topic = new(readText(o, "topic", catalog.MaxFilterable))
		}
		c.Tags = readTags(o)
		c.Status = o.OneOf("status", catalog.QuestionStatuses)
	})
	return c, err
}

// readQuestionBody calls read with the object that the body is, and returns the faults that were found.
func readQuestionBody(x *exchange, r *http.Request, required, optional []string, read func(request.Object)) error {
	body, at, err := bodyOf(x, r)
	if err != nil {
		return err
	}
	var f problem.Faults
	read(request.NewOpenObject(body, at, &f, required, optional))
	if len(f) > 0 {
		return &problem.Problem{Code: problem.InvalidRequest, Detail: "The body is not a valid question.", Errors: f}
	}
	return nil
}

// readText reads a string of 1 to most characters.
func readText(o request.Object, name string, most int) string {
	if v := o.Member(name); v != nil && v.Kind == strictjson.KindString && !hasCharacters(v.Text, most) {
		o.Fault(name, fmt.Sprintf("must have 1 to %d characters", most))
		return v.Text
	}
	return o.Text(name)
}

// readTags reads the member tags: texts, none twice. Without the member it returns nil.
func readTags(o request.Object) []string {
	if o.Member("tags") == nil {
		return nil
	}
	items := o.Array("tags", "tags", 0, maxQuestionTags)
	tags := make([]string, len(items))
	for i, item := range items {
		tags[i] = item.Text
		at := "tags/" + strconv.Itoa(i)
		if item.Kind != strictjson.KindString || !hasCharacters(item.Text, catalog.MaxFilterable) {
			o.Fault(at, fmt.Sprintf("must be a string of 1 to %d characters", catalog.MaxFilterable))
		} else if first := slices.Index(tags[:i], item.Text); first >= 0 {
			o.Fault(at, fmt.Sprintf("duplicates tags/%d", first))
		}
	}
	return tags
}

// hasCharacters reports whether a text has 1 to most characters.
func hasCharacters(text string, most int) bool {
	// A text has at least as many bytes as characters, so most texts need not be decoded.
	return text != "" && (len(text) <= most || utf8.RuneCountInString(text) <= most)
}
