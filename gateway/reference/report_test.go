package reference_test

import (
	"regexp"
	"strings"
	"testing"

	"aiv/gateway/reference"
)

// TestReportFiles: the report is small, loads only files of its host, and has no inline script or style.
func TestReportFiles(t *testing.T) {
	byPath := make(map[string]reference.Document)
	for _, d := range reference.Documents() {
		byPath[d.Path] = d
	}
	page := byPath["/report"]
	if page.Policy != byPath["/docs"].Policy || page.MediaType != "text/html; charset=utf-8" {
		t.Errorf("the page has the type %s and the policy %s", page.MediaType, page.Policy)
	}
	if m := regexp.MustCompile(`<script>|<style|style=|https?:|\son\w+=`).FindString(string(page.Body)); m != "" {
		t.Errorf("the page has %s", m)
	}
	size, loaded := len(page.Body), make(map[string]bool)
	var load func(text, folder string)
	load = func(text, folder string) {
		for _, m := range regexp.MustCompile(`(?:href|src)="/external-api-v1(/[a-z]+/[a-z.]+)"|from "(\.\.?/[a-z/.]+)"`).FindAllStringSubmatch(text, -1) {
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
