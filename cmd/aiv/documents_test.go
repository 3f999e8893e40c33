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
	must(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			documents[path] = string(text)
			return err
		}
		return err
	}))
	for path, text := range documents {
		for _, link := range matched(`\]\(([^()\s:]+)\)`, text) {
			file, anchor, _ := strings.Cut(link, "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			_, err := os.Stat(target)
			isTarget := func(heading string) bool { return anchorOf(heading) == anchor }
			if err != nil || anchor != "" && !slices.ContainsFunc(matched(`(?m)^#+ (.*)$`, documents[target]), isTarget) {
				t.Errorf("%s links to %s: %v, or there is no such heading", path, link, err)
			}
		}
	}
	operating := documents[filepath.Join(root, "cmd/aiv/OPERATING.md")]
	top, _, _ := strings.Cut(operating, "\n## ")
	equal(t, matched(`(?m)^## (.*)$`, operating), matched(`\[([^]]+)\]\(#`, top), "list of sections")
	if len(documents) < 6 || top == "" {
		t.Errorf("found %d documents", len(documents))
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
