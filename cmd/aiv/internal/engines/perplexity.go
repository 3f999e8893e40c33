package engines

import "strings"

// The Perplexity Agent API: https://docs.perplexity.ai/api-reference/agent-post. Its presets and lists of models are
// not used, because they run models of other vendors. instructions is not used either: it replaces the prompt that
// makes the model cite.

// perplexityBody sends language_preference only for a language with an ISO 639-1 code. The instructions always name the
// language.
func perplexityBody(p *prompt) object {
	message := func(role, content string) object {
		return object{{"type", "message"}, {"role", role}, {"content", content}}
	}
	o := object{
		{"model", p.model},
		{"input", []object{message("system", p.system(false, p.grounded)), message("user", p.question)}},
	}
	if language, _, _ := strings.Cut(p.language, "-"); len(language) == 2 { // ISO 639-1
		o = append(o, member{"language_preference", language})
	}
	o = append(o, member{"max_output_tokens", p.limit}, member{"store", false})
	if p.grounded {
		tool := object{{"type", "web_search"}, {"user_location", object{{"country", p.country}}}}
		o = append(o, member{"tools", []object{tool}}, member{"tool_choice", object{{"type", "web_search"}}})
	}
	return o
}

// readPerplexity takes annotations as citations or, if there are none, the results that the text names by their ids.
// Results that it does not name were only found.
func readPerplexity(_ *prompt, r response) (reading, error) {
	m, err := readResponse(r)
	if err != nil {
		return reading{}, err
	}
	out := m.reading()
	searches := m.ofType("search_results")
	byID := make(map[int64]citation)
	for _, s := range searches {
		for _, q := range s.at("queries").list() {
			out.queries = append(out.queries, q.text())
		}
		for _, found := range s.at("results").list() {
			id := found.at("id").count()
			if id == nil {
				continue
			}
			if _, ok := byID[*id]; !ok {
				byID[*id] = citation{found.at("url").text(), found.at("title").text()}
			}
		}
	}
	out.citations = m.urlCitations(func(value) bool { return true })
	if len(out.citations) == 0 {
		for _, n := range marked(out.text) {
			if c, ok := byID[n]; ok {
				out.citations = append(out.citations, c)
			}
		}
	}
	// An item of results is there only if a search was made.
	out.searched = new(len(searches) > 0)
	usage := r.at("usage")
	out.usage = usageOf(usage, usage.at("input_tokens").count(), usage.at("output_tokens").count(),
		or(usage.at("tool_calls_details", "search_web", "invocation"), len(searches)))
	return out, nil
}
