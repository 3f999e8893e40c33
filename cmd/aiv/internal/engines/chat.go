package engines

import (
	"errors"
	"slices"
	"strings"
)

// Any server that is compatible with OpenAI's Chat Completions API:
// https://platform.openai.com/docs/api-reference/chat. It cannot turn search on: a model for which the operator
// declared grounded_search searches by itself, and gets the same request.

// chatBody asks for one response instead of a stream. The instructions name the country, because the API has no
// parameter for it.
func chatBody(p *prompt) object {
	o := object{
		{"model", p.model},
		{"messages", []object{
			{{"role", "system"}, {"content", p.system(false, false)}},
			{{"role", "user"}, {"content", p.question}},
		}},
		{"stream", false},
	}
	if p.limit > 0 { // local models reject a limit beyond their context
		o = append(o, member{"max_tokens", p.limit})
	}
	return o
}

// readChat also reads what compatible servers add: an error in a response with the status 200, text in parts,
// reasoning in the text, and lists of pages.
func readChat(_ *prompt, r response) (reading, error) {
	if r.at("error").any != nil {
		return refuse(chatError(r)), nil
	}
	choices, err := need[[]any](r.value, "", "choices")
	if err != nil {
		return reading{}, err
	}
	if len(choices) != 1 {
		return reading{}, errors.New("choices has not one item")
	}
	choice := value{choices[0]}
	message := choice.at("message")
	if _, ok := message.any.(map[string]any); !ok {
		return reading{}, errors.New("choices[0].message is missing or of another type")
	}
	out := reading{text: withoutThought(chatText(message.at("content"))), version: r.at("model").text()}
	usage := r.at("usage")
	out.usage = usageOf(usage, usage.at("prompt_tokens").count(), usage.at("completion_tokens").count(), nil)
	out.citations = chatCitations(r, message, out.text)
	// Without a page that it cites, it is not known whether the server searched.
	if slices.ContainsFunc(out.citations, citation.isPage) {
		out.searched = new(true)
	}
	switch reason := choice.at("finish_reason").text(); {
	case reason == "content_filter" || message.at("refusal").text() != "":
		return refuse(contentRefused), nil
	case reason == "length":
		out.truncated = true
	case reason == "tool_calls" || reason == "function_call":
		return reading{}, errors.New("choices[0].finish_reason is a call of a tool that was not offered")
	}
	return out, nil
}

// chatError returns what an error within a response with the status 200 means.
func chatError(r response) fault {
	code, isCode := isStatus(r.at("error", "code").word())
	e := readError("chat", code, r.value)
	// Without a status, as with a word such as "server_error", no rule can be chosen.
	if !isCode {
		return providerError.because(e.message)
	}
	return e.fault()
}

// chatText returns the content of a message, which is a string or a list of parts.
func chatText(content value) string {
	if text := content.text(); text != "" {
		return text
	}
	var text strings.Builder
	for _, part := range content.list() {
		if part.at("type").text() == "text" {
			text.WriteString(part.at("text").text())
		}
	}
	return text.String()
}

// whiteSpace has the characters that servers put around the thought.
const whiteSpace = " \t\r\n"

// withoutThought removes what a reasoning model puts before its answer.
func withoutThought(text string) string {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(text, whiteSpace), "<think>"); ok {
		if _, answer, ok := strings.Cut(rest, "</think>"); ok {
			return strings.TrimLeft(answer, whiteSpace)
		}
	}
	return text
}

// chatCitations returns the annotations of the message or, if there are none, the listed pages that the text names.
func chatCitations(r response, message value, text string) (found []citation) {
	for _, a := range message.at("annotations").list() {
		if c := a.at("url_citation"); c.any != nil {
			found = append(found, citation{c.at("url").text(), c.at("title").text()})
		}
	}
	if len(found) > 0 {
		return found
	}
	titles := make(map[string]string) // by URL
	for _, result := range r.at("search_results").list() {
		if url := result.at("url").text(); titles[url] == "" {
			titles[url] = result.at("title").text()
		}
	}
	// The mark [1] is the first of the listed pages.
	listed := r.at("citations").list()
	for _, n := range marked(text) {
		if n >= 1 && n <= int64(len(listed)) {
			url := listed[n-1].text()
			found = append(found, citation{url, titles[url]})
		}
	}
	return found
}
