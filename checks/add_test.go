package checks_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/store/storetest"

	// TestAddACheck builds the tests of gateway. It begins when this package's imports have been compiled; otherwise it
	// would compile them beside the go command that runs it, when no package is in the cache.
	_ "aiv/gateway"
	_ "aiv/gateway/worker"
)

// TestAddACheck follows the README's steps to add a check in a copy of the repository. The tests of the copy must pass,
// and only the files that the README names may differ. In a repository that has this check already, nothing may differ.
func TestAddACheck(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	must(t, err)
	tree := t.TempDir()
	run(t, root, "sh", "-c", `tar -c --exclude './.*' . | tar -x -C "$0"`, tree)
	_, section, _ := strings.Cut(read(t, tree, "README.md"), "\n## Add a check\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := codeBlocks(section)
	if len(blocks) != 4 {
		t.Fatalf("README.md: %d code blocks in Add a check, want 4: the check, its line, the entry of its code, the golden file", len(blocks))
	}
	var want []string
	if _, err := os.Stat(filepath.Join(root, "checks/bulk.go")); err != nil {
		want = []string{"checks/bulk.go", "checks/checks.go", "gateway/reference/openapi.json", "testdata/golden/runs.create/rejected_bulk.txt"}
		check, lines, entry, golden := blocks[0], strings.TrimSpace(blocks[1]), strings.TrimSpace(blocks[2]), blocks[3]
		write(t, tree, want[0], check)
		neighbor, _, _ := strings.Cut(lines, "\n")
		replace(t, tree, want[1], "\t\t"+neighbor+"\n", "\t\t"+strings.ReplaceAll(lines, "\n", "\n\t\t")+"\n")
		next := regexp.MustCompile(`\{\s*"code": "rate_limit_exceeded"`).FindString(read(t, tree, want[2]))
		replace(t, tree, want[2], next, entry+"\n          "+next)
		write(t, tree, want[3], golden)
	}
	// The overlay builds the changed files in place, with the cached packages of this tree; the tests run in the copy.
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	for _, name := range want {
		overlay.Replace[filepath.Join(root, name)] = filepath.Join(tree, name)
	}
	text, err := json.Marshal(overlay)
	must(t, err)
	temp := t.TempDir()
	write(t, temp, "overlay.json", string(text))
	tests := filepath.Join(temp, "gateway.test")
	run(t, root, "go", "test", "-c", "-vet=off", "-ldflags=-s", "-overlay", filepath.Join(temp, "overlay.json"), "-o", tests, "./gateway")
	run(t, filepath.Join(tree, "gateway"), tests, "-test.run", "^TestGolden$/runs.create", "-update")
	run(t, filepath.Join(tree, "gateway"), tests, "-test.run", "EveryCheck|ProblemCodes|OpenAPIAndGoldenFiles")

	// diff fails if there are differences: Only in FOLDER: FILE, or Files FILE and FILE differ.
	differences, _ := exec.CommandContext(t.Context(), "env", "LC_ALL=C", "diff", "-rq", "-x", ".*", root, tree).CombinedOutput()
	var got []string
	for line := range strings.Lines(strings.ReplaceAll(string(differences), ": ", "/")) {
		if _, name, found := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), " differ"), tree+"/"); found {
			got = append(got, name)
		} else {
			t.Errorf("unexpected difference: %s", line)
		}
	}
	storetest.Equal(t, want, slices.Sorted(slices.Values(got)), "changed files")
	if response := read(t, tree, "testdata/golden/runs.create/rejected_bulk.txt"); !strings.Contains(response, `"code":"bulk_not_included"`) {
		t.Errorf("the golden file shows no rejection:\n%s", response)
	}
}

// codeBlocks returns the contents of the fenced blocks of a Markdown list, without their indentation.
func codeBlocks(markdown string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?ms)^   ```\\w+\n(.*?)^   ```$").FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, regexp.MustCompile(`(?m)^   `).ReplaceAllString(m[1], ""))
	}
	return blocks
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

func read(t *testing.T, tree, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(tree, name))
	must(t, err)
	return string(content)
}

func write(t *testing.T, tree, name, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644))
}

func replace(t *testing.T, tree, name, old, text string) {
	t.Helper()
	content := read(t, tree, name)
	if old == "" || strings.Count(content, old) != 1 {
		t.Fatalf("%s does not contain %q once", name, old)
	}
	write(t, tree, name, strings.Replace(content, old, text, 1))
}

var must = storetest.Must
