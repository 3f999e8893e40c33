package engines

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"aiv/cmd/aiv/internal/work"
	"aiv/runs/answers"
)

// The Anthropic Messages API: https://docs.claude.com/en/api/messages, with the web search tool of 2025-03-05.

// maxPauses bounds how often a paused turn is continued.
const maxPauses = 8

// A turn is what the model has said before it paused.
type turn struct {
	pauses int
	blocks []json.RawMessage // as they were sent: the API checks that they come back unchanged
	said   []value           // the same
	spent  *work.Usage
}

// anthropicBody sends a paused turn as the assistant's message, and the API continues it.
func anthropicBody(p *prompt) object {
	messages := []object{{{"role", "user"}, {"content", p.question}}}
	if p.pauses > 0 {
		messages = append(messages, object{{"role", "assistant"}, {"content", p.blocks}})
	}
	o := object{
		{"model", p.model}, {"max_tokens", p.limit},
		{"system", p.system(p.grounded && p.unforced, p.grounded && !p.unlocated)}, {"messages", messages},
	}
	if !p.grounded {
		return o
	}
	// max_uses bounds the searches of a request, and with them its cost.
	tool := object{{"type", "web_search_20250305"}, {"name", "web_search"}, {"max_uses", 5}}
	if !p.unlocated {
		tool = append(tool, member{"user_location", object{{"type", "approximate"}, {"country", p.country}}})
	}
	choice := object{{"type", "tool"}, {"name", "web_search"}}
	if !p.forcing() {
		choice = object{{"type", "auto"}}
	}
	return append(o, member{"tools", []object{tool}}, member{"tool_choice", choice})
}

// forcing reports whether a request requires a search. A turn that goes on has searched.
func (p *prompt) forcing() bool { return p.grounded && !p.unforced && p.pauses == 0 }

// adaptAnthropic drops what the model or the search does not take: each once for a job.
func adaptAnthropic(p *prompt, e *apiError) *prompt {
	next := *p
	switch {
	case e.status != 400 || !strings.EqualFold(e.kind, "invalid_request_error"):
		return nil
	case p.forcing() && has(e.message, "tool_choice"):
		next.unforced = true
	case p.grounded && !p.unlocated && has(e.message, "country code "+strings.ToLower(p.country)+" is not supported"):
		next.unlocated = true
	default:
		return nil
	}
	return &next
}

// readAnthropic continues a paused turn by another request, and reads all blocks of the turn when it ends. After
// maxPauses, what was said so far is a truncated answer.
func readAnthropic(p *prompt, r response) (reading, error) {
	if _, err := need[[]any](r.value, "", "content"); err != nil {
		return reading{}, err
	}
	stop, err := need[string](r.value, "", "stop_reason")
	if err != nil {
		return reading{}, err
	}
	content := r.at("content").list()
	// Without this check, a text that is not a string would silently be missing from the answer.
	for i, block := range content {
		if block.at("type").text() == "text" {
			if _, err := need[string](block, fmt.Sprintf("content[%d]", i), "text"); err != nil {
				return reading{}, err
			}
		}
	}
	spent := anthropicUsage(r.at("usage"))
	if p.pauses > 0 {
		spent = addUsage(p.spent, spent)
	}
	// Clip makes append copy, so that p does not change.
	t := turn{pauses: p.pauses + 1, said: append(slices.Clip(p.said), content...), spent: spent}
	if stop == "pause_turn" && p.pauses < maxPauses {
		var raw struct{ Content []json.RawMessage }
		if err := json.Unmarshal(r.body, &raw); err != nil {
			return reading{}, err
		}
		t.blocks = append(slices.Clip(p.blocks), raw.Content...)
		if len(t.blocks) == 0 { // the API takes no message without content
			return refuse(emptyAnswer), nil
		}
		next := *p
		next.turn = t
		return reading{next: &next}, nil
	}
	out := t.reading()
	out.version = r.at("model").text()
	switch stop {
	case "end_turn", "stop_sequence":
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		out.truncated = true
	case "refusal":
		return refuse(contentRefused.because(r.at("stop_details", "explanation").text())), nil
	default:
		return reading{}, fmt.Errorf("stop_reason is none that an answer has")
	}
	if f := t.searchFault(); f != nil {
		return refuse(*f), nil
	}
	return out, nil
}

// reading returns what all responses of a turn contain. Text before the first search says what the model is about to
// do.
func (t *turn) reading() (out reading) {
	first := slices.IndexFunc(t.said, func(b value) bool { return b.at("type").text() == "server_tool_use" })
	// Without a search, first is -1, and all blocks are used.
	blocks := t.said[first+1:]
	out.text = withoutTags(blocks)
	// A model that says nothing after its searches has answered before them.
	if blank(out.text) {
		blocks = t.said
		out.text = withoutTags(blocks)
	}
	for _, b := range blocks {
		if b.at("type").text() != "text" {
			continue
		}
		for _, c := range b.at("citations").list() {
			if c.at("type").text() == "web_search_result_location" {
				out.citations = append(out.citations, citation{c.at("url").text(), c.at("title").text()})
			}
		}
	}
	// Only results count: a search that failed has an error in place of the list.
	out.searched = new(false)
	for _, b := range t.said {
		switch b.at("type").text() {
		case "server_tool_use":
			if b.at("name").text() == "web_search" {
				out.queries = append(out.queries, b.at("input", "query").text())
			}
		case "web_search_tool_result":
			if _, ok := b.at("content").any.([]any); ok {
				out.searched = new(true)
			}
		}
	}
	out.usage = t.spent
	return out
}

// citeTags mark citations in the text of some models.
var citeTags = regexp.MustCompile(`</?cite(?:\s[^>]*)?>`)

// withoutTags returns the text of blocks without citeTags, whose citations the blocks have as members.
func withoutTags(blocks []value) string { return citeTags.ReplaceAllString(textOf(blocks), "") }

// textOf joins the texts of blocks without a separator: the API splits sentences at citations.
func textOf(blocks []value) string {
	var text strings.Builder
	for _, b := range blocks {
		if b.at("type").text() == "text" {
			text.WriteString(b.at("text").text())
		}
	}
	return text.String()
}

// searchFault returns why no search succeeded, if that passes. The answer was made without what the job asks for.
func (t *turn) searchFault() (f *fault) {
	for _, b := range t.said {
		if b.at("type").text() != "web_search_tool_result" {
			continue
		}
		if _, ok := b.at("content").any.([]any); ok {
			return nil
		}
		switch b.at("content", "error_code").text() {
		// This takes precedence over unavailable, because the provider must be throttled.
		case "too_many_requests":
			f = new(tooManyRequests.because("web search: too_many_requests"))
		case "unavailable":
			if f == nil {
				f = new(providerError.because("web search: unavailable"))
			}
		}
	}
	return f
}

// anthropicUsage adds the tokens that were read from and written to the cache, which input_tokens leaves out.
func anthropicUsage(usage value) *work.Usage {
	return usageOf(usage,
		sum(usage.at("input_tokens"), usage.at("cache_creation_input_tokens"), usage.at("cache_read_input_tokens")),
		usage.at("output_tokens").count(), or(usage.at("server_tool_use", "web_search_requests"), 0))
}

// addUsage adds what two responses cost. What one of them does not say is not known of both.
func addUsage(a, b *work.Usage) *work.Usage {
	if a == nil || b == nil {
		return nil
	}
	add := func(a, b *int64) *int64 {
		if a == nil || b == nil || max(*a, *b) > answers.MaxUsage {
			return nil
		}
		return new(*a + *b)
	}
	return &work.Usage{
		InputTokens:  add(a.InputTokens, b.InputTokens),
		OutputTokens: add(a.OutputTokens, b.OutputTokens),
		Searches:     add(a.Searches, b.Searches),
	}
}
