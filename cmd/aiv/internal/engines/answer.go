package engines

import (
	"strings"
	"time"
	"unicode/utf8"

	"aiv/cmd/aiv/internal/work"
	"aiv/gateway/worker"
	"aiv/runs/answers"
)

// answer returns a reading within the bounds of the worker interface, which would reject the whole answer because of
// one citation, and how many citations it dropped. redact removes the key, which an API may repeat anywhere.
func (r *reading) answer(at time.Time, redact func(string) string) (a work.Answer, dropped int) {
	clean := func(text string) string { return work.Clean(redact(text)) }
	a = work.Answer{AnsweredAt: at, Searched: r.searched, Truncated: r.truncated, Usage: bounds(r.usage)}
	a.Text = clean(r.text)
	// A text that is too long is cut, and marked like one that ended at the output limit.
	if len(a.Text) > answers.MaxText {
		a.Text, a.Truncated = cut(a.Text, answers.MaxText), true
	}
	if r.version != "" {
		a.ModelVersion = new(first(clean(r.version), answers.MaxModelVersion))
	}
	// Citations stay in the order of their first use. Repeated ones and ones beyond the bound do not count as dropped.
	seen := make(map[string]bool)
	for _, c := range r.citations {
		c.url = clean(c.url)
		switch {
		case !c.isPage():
			dropped++
		case seen[c.url]:
		case len(a.Citations) == answers.MaxCitations:
		default:
			seen[c.url] = true
			var title *string
			if c.title != "" {
				title = new(first(clean(c.title), answers.MaxTitle))
			}
			a.Citations = append(a.Citations, work.Citation{URL: c.url, Title: title})
		}
	}
	asked := make(map[string]bool)
	for _, q := range r.queries {
		q = first(clean(q), answers.MaxSearchQuery)
		if q != "" && !asked[q] && len(a.SearchQueries) < answers.MaxSearchQueries {
			asked[q] = true
			a.SearchQueries = append(a.SearchQueries, q)
		}
	}
	return a, dropped
}

// isPage reports whether the worker interface takes the URL.
func (c citation) isPage() bool {
	_, ok := worker.Domain(c.url)
	return ok && utf8.RuneCountInString(c.url) <= answers.MaxURL
}

// bounds drops counts that the worker interface does not take.
func bounds(u *work.Usage) *work.Usage {
	if u == nil {
		return nil
	}
	bound := func(n *int64) *int64 {
		if n == nil || *n > answers.MaxUsage {
			return nil
		}
		return n
	}
	return &work.Usage{InputTokens: bound(u.InputTokens), OutputTokens: bound(u.OutputTokens), Searches: bound(u.Searches)}
}

// first returns up to n characters of a text.
func first(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// cut returns up to n bytes of a text, whole characters. The text must be longer than n.
func cut(text string, n int) string {
	for !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// minSecret is the length of the shortest key that is secret. Shorter ones are placeholders for servers that need no
// key, such as "ollama", and may be words of an answer.
const minSecret = 12

// redactor returns a function that replaces a secret key.
func redactor(key string) func(string) string {
	if len(key) < minSecret {
		return func(text string) string { return text }
	}
	return func(text string) string { return strings.ReplaceAll(text, key, "[key]") }
}
