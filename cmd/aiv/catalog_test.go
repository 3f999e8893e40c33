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

func TestCatalogThereAndBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out, wrong := filepath.Join(dir, "in.jsonl"), filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "wrong.jsonl")
	write(t, in, sampleCatalog)
	write(t, wrong, `{"kind":"provider","code":"acme"}`+"\n"+`{"kind":"modle"}`+"\n")
	write(t, out, "old")
	must(t, os.Chmod(out, 0o660))
	s := newStory(t)
	s.run(t, []step{
		{line: "providers list", stdout: "There are no providers; import them with aiv catalog import.\n"},
		{line: "catalog import " + wrong, code: 1, stderr: `
aiv: nothing was imported:
  line 1: missing member "name"
  line 2: kind must be one of provider, model, question, methodology
`},
		{line: "catalog import " + filepath.Join(dir, "none"), code: 1, stderr: "aiv: open " + filepath.Join(dir, "none") + ": no such file or directory\n"},
		{line: "catalog import " + in + " -json", stdout: `{"providers":1,"methodologies":1,"models":1,"questions":1}` + "\n"},
		{line: "catalog import -", stdin: sampleCatalog, stdout: "Imported 1 provider, 1 model, 1 question and 1 methodology.\n"},
		{line: "catalog import -json -", stdout: `{"providers":0,"methodologies":0,"models":0,"questions":0}` + "\n"},
		{line: "catalog export", stdout: sampleCatalog},
		{line: "catalog export -json", stdout: "[" + strings.ReplaceAll(strings.TrimSuffix(sampleCatalog, "\n"), "\n", ",") + "]\n"},
		{line: "catalog export -o " + out, stdout: "Exported 4 lines to " + out + ".\n"},
		{line: "catalog export -json -o " + out, stdout: `{"file":"` + out + `","lines":4}` + "\n"},
	})
	text, err := os.ReadFile(out)
	must(t, err)
	equal(t, sampleCatalog, string(text), "exported file")
	info, err := os.Stat(out)
	must(t, err)
	equal(t, os.FileMode(0o660), info.Mode(), "mode of the file that was replaced")
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 3 {
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
