package engines

import (
	"errors"
	"fmt"
	"strings"
)

// A modelResponse is a response in the form of OpenAI's Responses API, which perplexity and xai follow.
type modelResponse struct {
	response
	parts []value // of type output_text, that are the answer
	items []value // of the output
	ended *fault  // not nil: the response is no answer
	cut   bool    // it stopped at a limit
}

// readResponse reads the parts of the answer and how the response ended. If a message is the final answer, the others
// are what the model said while it worked.
func readResponse(r response) (m modelResponse, err error) {
	m.response = r
	status, err := need[string](r.value, "", "status")
	if err != nil {
		return m, err
	}
	if _, err := need[[]any](r.value, "", "output"); err != nil {
		return m, err
	}
	m.items = r.at("output").list()
	refused, final := false, false
	for i, item := range m.items {
		if item.at("type").text() != "message" {
			continue
		}
		path := fmt.Sprintf("output[%d]", i)
		if _, err := need[[]any](item, path, "content"); err != nil {
			return m, err
		}
		isFinal := item.at("phase").text() == "final_answer"
		// What came before the first final message was not the answer.
		if isFinal && !final {
			final, m.parts = true, nil
		}
		for k, part := range item.at("content").list() {
			switch part.at("type").text() {
			case "refusal":
				refused = true
			case "output_text":
				if _, err := need[string](part, fmt.Sprintf("%s.content[%d]", path, k), "text"); err != nil {
					return m, err
				}
				// Before a final message, all messages count; after it, only final ones.
				if isFinal == final {
					m.parts = append(m.parts, part)
				}
			}
		}
	}
	m.ended, m.cut, err = r.ending(status, refused)
	return m, err
}

// ending returns how a response with a status ended. f is nil if the response is an answer, and cut reports whether it
// stopped at a limit. An error means that the status is none of the known ones.
func (r response) ending(status string, refused bool) (f *fault, cut bool, err error) {
	problem := r.at("error")
	code, detail := problem.at("code").word(), problem.at("message").text()
	switch {
	case (status == "completed" || status == "incomplete") && refused,
		status == "incomplete" && r.at("incomplete_details", "reason").text() == "content_filter":
		return &contentRefused, false, nil
	case status == "completed":
		return nil, false, nil
	case status == "incomplete":
		return nil, true, nil
	case status == "failed" && (code == "rate_limit_exceeded" ||
		problem.at("type").text() == "request_rate_limit_exceeded"):
		return new(tooManyRequests.because(detail)), false, nil
	case status == "failed" && (code == "invalid_prompt" || has(code, "policy")):
		return new(contentRefused.because(detail)), false, nil
	case status == "failed" || status == "cancelled":
		return new(providerError.because(detail)), false, nil
	}
	return nil, false, errors.New("status is none that an answer has")
}

// reading returns what the APIs have in common.
func (m *modelResponse) reading() reading {
	var text strings.Builder
	for _, p := range m.parts {
		text.WriteString(p.at("text").text())
	}
	return reading{text: text.String(), version: m.at("model").text(), truncated: m.cut, fault: m.ended}
}

// urlCitations returns the annotations of the answer that name a page, if they satisfy a condition.
func (m *modelResponse) urlCitations(holds func(value) bool) (found []citation) {
	for _, p := range m.parts {
		for _, a := range p.at("annotations").list() {
			if a.at("type").text() == "url_citation" && holds(a) {
				found = append(found, citation{a.at("url").text(), a.at("title").text()})
			}
		}
	}
	return found
}

// ofType returns the items of a type.
func (m *modelResponse) ofType(name string) (found []value) {
	for _, item := range m.items {
		if item.at("type").text() == name {
			found = append(found, item)
		}
	}
	return found
}

// searchSucceeded reports whether a call of the search tool did not fail.
func searchSucceeded(calls []value) *bool {
	for _, c := range calls {
		if c.at("status").text() != "failed" {
			return new(true)
		}
	}
	return new(false)
}
