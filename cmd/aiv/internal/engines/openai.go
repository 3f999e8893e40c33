package engines

import (
	"regexp"
	"strings"
)

// The OpenAI Responses API: https://platform.openai.com/docs/api-reference/responses (OpenAPI document 2.3.0).

// openaiBody always sends the user's country, because the search assumes the United States without it.
func openaiBody(p *prompt) object {
	o := object{
		{"model", p.model}, {"instructions", p.system(false, p.grounded)}, {"input", p.question},
		{"store", false}, {"max_output_tokens", p.limit},
	}
	if p.grounded {
		location := object{{"type", "approximate"}, {"country", p.country}}
		tool := object{{"type", "web_search"}, {"user_location", location}}
		o = append(o, member{"tools", []object{tool}}, member{"tool_choice", "required"})
	}
	return o
}

// readOpenAI takes the number of searches from tool_usage. Without that member, it counts the calls that searched.
func readOpenAI(_ *prompt, r response) (reading, error) {
	m, err := readResponse(r)
	if err != nil {
		return reading{}, err
	}
	out := m.reading()
	out.text = openaiMarks.ReplaceAllString(out.text, "")
	for _, c := range m.urlCitations(func(value) bool { return true }) {
		out.citations = append(out.citations, citation{withoutSource(c.url), c.title})
	}
	calls, searches := m.ofType("web_search_call"), 0
	for _, c := range calls {
		if c.at("action", "type").text() != "search" {
			continue // a page that was opened
		}
		searches++
		queries := c.at("action", "queries").list()
		if len(queries) == 0 {
			queries = []value{c.at("action", "query")}
		}
		for _, q := range queries {
			out.queries = append(out.queries, q.text())
		}
	}
	out.searched = searchSucceeded(calls)
	usage := r.at("usage")
	out.usage = usageOf(usage, usage.at("input_tokens").count(), usage.at("output_tokens").count(),
		or(r.at("tool_usage", "web_search", "num_requests"), searches))
	return out, nil
}

// openaiMarks are references in the text that no reader is meant to see. They are between two private-use characters,
// or in lenticular brackets with a dagger.
var openaiMarks = regexp.MustCompile(`\x{E200}[^\x{E201}]*\x{E201}|【[^】]*†[^】]*】`)

// withoutSource removes the parameter by which the API marks the links that it gives. The rest of the URL stays as it
// is.
func withoutSource(url string) string {
	url, fragment, hasFragment := strings.Cut(url, "#")
	address, query, hasQuery := strings.Cut(url, "?")
	if hasQuery {
		var kept []string
		for parameter := range strings.SplitSeq(query, "&") {
			if parameter != "utm_source=openai" && parameter != "utm_source=chatgpt.com" {
				kept = append(kept, parameter)
			}
		}
		if kept != nil {
			address += "?" + strings.Join(kept, "&")
		}
	}
	if hasFragment {
		address += "#" + fragment
	}
	return address
}
