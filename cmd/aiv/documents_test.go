package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	markdownHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchor     = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// TestDocumentLinks follows the links of all documents to files of the repository and to headings.
func TestDocumentLinks(t *testing.T) {
	const root = "../.."
	documents := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		documents++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range markdownLink.FindAllStringSubmatch(string(text), -1) {
			if link := m[1]; !strings.Contains(link, "://") {
				checkLink(t, path, link)
			}
		}
		return nil
	})
	must(t, err)
	if documents < 6 {
		t.Errorf("found %d documents, want README.md and at least five others", documents)
	}
}

// TestContentsLinkToSections: the list at the top of OPERATING.md links to each of its sections, in their order.
func TestContentsLinkToSections(t *testing.T) {
	text, err := os.ReadFile("OPERATING.md")
	must(t, err)
	top, _, _ := strings.Cut(string(text), "\n## ")
	matches := func(pattern, text string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
		return found
	}
	sections := matches(`(?m)^## (.*)$`, string(text))
	equal(t, sections, matches(`\[([^]]+)\]\(#`, top), "list of sections")
	if len(sections) == 0 {
		t.Error("OPERATING.md has no sections")
	}
}

// checkLink reports a link of a document to a file or heading that does not exist.
func checkLink(t *testing.T, document, link string) {
	t.Helper()
	file, anchor, _ := strings.Cut(link, "#")
	target := document
	if file != "" {
		target = filepath.Join(filepath.Dir(document), file)
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("%s links to %s: %v", document, link, err)
		return
	}
	if anchor == "" {
		return
	}
	text, err := os.ReadFile(target)
	must(t, err)
	for _, m := range markdownHeading.FindAllStringSubmatch(string(text), -1) {
		if anchorOf(m[1]) == anchor {
			return
		}
	}
	t.Errorf("%s links to %s: %s has no such heading", document, link, target)
}

// anchorOf returns the anchor that GitHub gives a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
