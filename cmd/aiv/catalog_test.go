package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sampleCatalog = `{"kind":"methodology","version":"AIVM-1.0","status":"active","measurement_types":["grounded"],"max_repetitions":20,"max_jobs":100000}
{"kind":"provider","code":"acme","name":"Acme <AI>"}
{"kind":"model","id":"acme/one","name":"One","provider":"acme","provider_model":"one-1","status":"active","measurement_types":["grounded"],"countries":null,"languages":["it"],"grounded_search":true}
{"kind":"question","id":"q1","account_id":null,"text":"Chi?","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}
`

// TestCatalogIsExportedToAFile: the file is replaced, and keeps its mode. testdata/commands/catalog.txt has the rest.
func TestCatalogIsExportedToAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	write(t, out, "old")
	must(t, os.Chmod(out, 0o660))
	s := newStory(t)
	s.importSample(t)
	s.prints(t, "catalog export -o "+out, "Exported 4 lines to "+out+".\n")
	text, err := os.ReadFile(out)
	must(t, err)
	equal(t, sampleCatalog, string(text), "exported file")
	info, err := os.Stat(out)
	must(t, err)
	equal(t, os.FileMode(0o660), info.Mode(), "mode of the file that was replaced")
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("files left: %s", left)
	}
}

// TestJSONArray: wherever the writes are cut, JSON Lines become one array.
func TestJSONArray(t *testing.T) {
	for lines, want := range map[string]string{"": "[]\n", "{}\n": "[{}]\n", "{\"a\":1}\n{}\n{\"b\":2}\n": `[{"a":1},{},{"b":2}]` + "\n"} {
		for cut := range len(lines) + 1 {
			var got strings.Builder
			a := newJSONArray(&got)
			for _, part := range []string{lines[:cut], lines[cut:]} {
				if n, err := a.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := a.end(); err != nil || got.String() != want {
				t.Errorf("%q cut at %d: got %q, %v, want %q", lines, cut, got.String(), err, want)
			}
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o600))
}
