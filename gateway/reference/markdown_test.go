package reference_test

import (
	"regexp"
	"strings"
	"testing"

	"aiv/gateway/reference"
)

// TestMarkdownHasWhatThePageHas: the reference as Markdown has what the page has, and no HTML.
func TestMarkdownHasWhatThePageHas(t *testing.T) {
	byPath := make(map[string]string)
	for _, d := range reference.Documents() {
		byPath[d.Path] = string(d.Body)
	}
	text, page := byPath["/docs.md"], byPath["/docs"]
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[0], "# ") || !strings.Contains(lines[1], "/external-api-v1/llms.txt") {
		t.Errorf("the document begins with %q", lines[:2])
	}
	prose, fences := "", strings.Split(text, "```")
	for i := 0; i < len(fences); i += 2 {
		prose += fences[i]
	}
	if tag := regexp.MustCompile("</?[a-zA-Z][^`\n]*>").FindString(regexp.MustCompile("`[^`\n]*`").ReplaceAllString(prose, "")); tag != "" {
		t.Errorf("the document has the tag %s", tag)
	}
	if len(fences)%2 != 1 {
		t.Error("a code block does not end")
	}
	last := 0
	for _, m := range regexp.MustCompile(`<h([23]) id="[^"]*">(.*?)</h[23]>`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[2], "")
		if _, code, ok := strings.Cut(name, " "); ok && regexp.MustCompile(`^\d{3} `).MatchString(name) {
			name = code
		}
		if name == "Console" || strings.HasPrefix(name, "Your ") {
			continue // they need the page
		}
		i := strings.Index(text[last:], "\n"+strings.Repeat("#", int(m[1][0]-'0'))+" "+name+"\n")
		if i < 0 {
			t.Errorf("the document has no section %s after the section before it", name)
			continue
		}
		last += i
	}
	index := byPath["/llms.txt"]
	if len(index) > 2000 {
		t.Errorf("llms.txt has %d bytes", len(index))
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(index, -1) {
		if !strings.HasPrefix(m[1], "/external-api-v1/") {
			t.Errorf("llms.txt has the link %s", m[1])
		}
	}
}
