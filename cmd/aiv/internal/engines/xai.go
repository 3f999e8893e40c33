package engines

import (
	"encoding/json"
	"strings"
)

// The xAI Responses API: https://docs.x.ai/docs/api-reference. It rejects user_location, so the country is said.

// xaiBody sends the instructions as a system message, and asks the API to store nothing.
func xaiBody(p *prompt) object {
	o := object{
		{"model", p.model},
		{"input", []object{
			{{"role", "system"}, {"content", p.system(false, false)}},
			{{"role", "user"}, {"content", p.question}},
		}},
		{"store", false}, {"max_output_tokens", p.limit},
	}
	if p.grounded {
		o = append(o, member{"tools", []object{{{"type", "web_search"}}}}, member{"tool_choice", "required"})
	}
	return o
}

// readXAI leaves out titles that are only the URL or the number of a mark.
func readXAI(_ *prompt, r response) (reading, error) {
	m, err := readResponse(r)
	if err != nil {
		return reading{}, err
	}
	out := m.reading()
	// An annotation without extent is a page that the model has merely seen.
	for _, c := range m.urlCitations(func(a value) bool {
		start, end := a.at("start_index").count(), a.at("end_index").count()
		return start != nil && end != nil && *end > *start
	}) {
		if c.title == c.url || strings.Trim(c.title, "0123456789") == "" { // the number of its mark
			c.title = ""
		}
		out.citations = append(out.citations, c)
	}
	calls := m.ofType("web_search_call")
	for _, c := range calls {
		out.queries = append(out.queries, xaiQuery(c))
	}
	out.searched = searchSucceeded(calls)
	usage := r.at("usage")
	out.usage = usageOf(usage, usage.at("input_tokens").count(), usage.at("output_tokens").count(),
		or(usage.at("server_side_tool_usage_details", "web_search_calls"), len(calls)))
	return out, nil
}

// xaiQuery returns the query of a call, or "". Calls of an older form have it in the JSON of their arguments.
func xaiQuery(call value) string {
	if call.at("action", "type").text() == "search" {
		if query := call.at("action", "query").text(); query != "" {
			return query
		}
	}
	var arguments value
	if json.Unmarshal([]byte(call.at("arguments").text()), &arguments.any) != nil {
		return ""
	}
	return arguments.at("query").text()
}
