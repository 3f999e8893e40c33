package reference

import (
	"go/format"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func documentsByPath() map[string]Document {
	byPath := make(map[string]Document)
	for _, d := range Documents() {
		byPath[d.Path] = d
	}
	return byPath
}

// TestMarkdownHasWhatThePageHas: the reference as Markdown has the sections of the page, and no HTML.
func TestMarkdownHasWhatThePageHas(t *testing.T) {
	byPath := documentsByPath()
	text, page, index := string(byPath["/docs.md"].Body), string(byPath["/docs"].Body), string(byPath["/llms.txt"].Body)
	if strings.Count(text, "```")%2 != 0 {
		t.Error("a code block does not end")
	}
	prose := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`").ReplaceAllString(text, "")
	if tag := regexp.MustCompile("</?[a-zA-Z][^`\n]*>").FindString(prose); tag != "" {
		t.Errorf("the document has the tag %s", tag)
	}
	for _, m := range regexp.MustCompile(`<h([23]) id="[^"]*">(.*?)</h[23]>`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`<span class="status">\d+</span> |<[^>]*>`).ReplaceAllString(m[2], "")
		if name == "Console" || strings.HasPrefix(name, "Your ") {
			continue // they need the page
		}
		_, rest, found := strings.Cut(text, "\n"+strings.Repeat("#", int(m[1][0]-'0'))+" "+name+"\n")
		if !found {
			t.Errorf("the document has no section %s after the section before it", name)
			continue
		}
		text = "\n" + rest
	}
	for _, m := range regexp.MustCompile(`\]\(([^)]*)\)`).FindAllStringSubmatch(index, -1) {
		if !strings.HasPrefix(m[1], "/external-api-v1/") {
			t.Errorf("llms.txt has the link %s", m[1])
		}
	}
}

// TestGoSamples checks that the samples in Go are valid Go source, formatted by gofmt.
func TestGoSamples(t *testing.T) {
	samples := 0
	for _, g := range newPage(sources()).Groups {
		for _, r := range g.Routes {
			for _, s := range r.Samples {
				if s.ID != "go" {
					continue
				}
				samples++
				want, err := format.Source([]byte(s.Text + "\n"))
				if diff := cmp.Diff(string(want), s.Text+"\n"); err != nil || diff != "" {
					t.Errorf("%s: %v (-gofmt +sample):\n%s", r.ID, err, diff)
				}
			}
		}
	}
	if samples < 8 {
		t.Errorf("%d samples in Go, want one for each of at least 8 operations", samples)
	}
}

// TestReportFiles: the report is small, and names only files of its host. It has no inline script or style.
func TestReportFiles(t *testing.T) {
	byPath := documentsByPath()
	page := byPath["/report"]
	if page.Policy != byPath["/docs"].Policy || page.MediaType != "text/html; charset=utf-8" {
		t.Errorf("the page has the type %s and the policy %s", page.MediaType, page.Policy)
	}
	if m := regexp.MustCompile(`<script>|<style|style=|https?:|\son\w+=`).FindString(string(page.Body)); m != "" {
		t.Errorf("the page has %s", m)
	}
	files, size := 0, 0
	for path, d := range byPath {
		if strings.HasPrefix(path, "/report") || slices.Contains([]string{"/docs/api.js", "/docs/colors.css", "/docs/icon.svg"}, path) {
			files, size = files+1, size+len(d.Body)
		}
	}
	if files != 8 || size > 60_000 {
		t.Errorf("the page loads %d files, %d bytes in all", files-1, size)
	}
}
