package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentLinks follows the links of all documents to files of the repository and to headings. The list at the top of
// OPERATING.md links to each of its sections, in their order.
func TestDocumentLinks(t *testing.T) {
	const root = "../.."
	documents := make(map[string]string) // by path
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			documents[path] = string(text)
			return err
		}
		return err
	}))
	for path, text := range documents {
		for _, link := range matched(`\]\(([^()\s]+)\)`, text) {
			if strings.Contains(link, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, link, err)
			}
			isTarget := func(heading string) bool { return anchorOf(heading) == anchor }
			if anchor != "" && !slices.ContainsFunc(matched(`(?m)^#+ (.*)$`, documents[target]), isTarget) {
				t.Errorf("%s links to %s: %s has no such heading", path, link, target)
			}
		}
	}
	operating := documents[filepath.Join(root, "cmd/aiv/OPERATING.md")]
	top, _, _ := strings.Cut(operating, "\n## ")
	sections := matched(`(?m)^## (.*)$`, operating)
	equal(t, sections, matched(`\[([^]]+)\]\(#`, top), "list of sections")
	if len(documents) < 6 || len(sections) == 0 {
		t.Errorf("found %d documents, and %d sections", len(documents), len(sections))
	}
}

// matched returns what the group of a pattern matches.
func matched(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

var notInAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)

// anchorOf returns the anchor that GitHub gives a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
