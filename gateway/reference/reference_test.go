package reference

import (
	"go/format"
	"regexp"
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

// TestMarkdownHasWhatThePageHas: the reference as Markdown has what the page has, and no HTML.
func TestMarkdownHasWhatThePageHas(t *testing.T) {
	byPath := documentsByPath()
	text, page, index := string(byPath["/docs.md"].Body), string(byPath["/docs"].Body), string(byPath["/llms.txt"].Body)
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[0], "# ") || !strings.Contains(lines[1], "/external-api-v1/llms.txt") {
		t.Errorf("the document begins with %q", lines[:2])
	}
	prose, fences := "", strings.Split(text, "```")
	for i := 0; i < len(fences); i += 2 {
		prose += fences[i]
	}
	prose = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(prose, "")
	if tag := regexp.MustCompile("</?[a-zA-Z][^`\n]*>").FindString(prose); tag != "" {
		t.Errorf("the document has the tag %s", tag)
	}
	if len(fences)%2 != 1 {
		t.Error("a code block does not end")
	}
	for _, m := range regexp.MustCompile(`<h([23]) id="[^"]*">(.*?)</h[23]>`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[2], "")
		if _, code, ok := strings.Cut(name, " "); ok && regexp.MustCompile(`^\d{3} `).MatchString(name) {
			name = code
		}
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
	if len(index) > 2000 {
		t.Errorf("llms.txt has %d bytes", len(index))
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

// TestReportFiles: the report is small, loads only files of its host, and has no inline script or style.
func TestReportFiles(t *testing.T) {
	byPath := documentsByPath()
	page := byPath["/report"]
	if page.Policy != byPath["/docs"].Policy || page.MediaType != "text/html; charset=utf-8" {
		t.Errorf("the page has the type %s and the policy %s", page.MediaType, page.Policy)
	}
	if m := regexp.MustCompile(`<script>|<style|style=|https?:|\son\w+=`).FindString(string(page.Body)); m != "" {
		t.Errorf("the page has %s", m)
	}
	link := regexp.MustCompile(`(?:href|src)="/external-api-v1(/[a-z]+/[a-z.]+)"|from "(\.\.?/[a-z/.]+)"`)
	size, loaded := len(page.Body), make(map[string]bool)
	var load func(text, folder string)
	load = func(text, folder string) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			path := m[1]
			if path == "" {
				path = strings.Replace(folder+"/"+strings.TrimPrefix(m[2], "./"), "/report/../", "/", 1)
			}
			d, ok := byPath[path]
			if !ok {
				t.Errorf("%s does not exist", path)
			}
			if !loaded[path] {
				loaded[path] = true
				size += len(d.Body)
				load(string(d.Body), path[:strings.LastIndexByte(path, '/')])
			}
		}
	}
	load(string(page.Body), "/report")
	if len(loaded) != 7 || size > 60_000 {
		t.Errorf("the page loads %v, %d bytes in all", loaded, size)
	}
}
