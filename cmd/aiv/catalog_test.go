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

// TestProvidersAreListed: dependencies, limits and pauses are set and shown. A worker is created for providers that
// exist, its token is shown once, and it is revoked.
func TestProvidersAreListed(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	dependency := func(name, met, note, at string) string {
		return `{"name":"` + name + `","met":` + met + `,"note":` + note + `,"changed_at":` + at + `}`
	}
	unmet := func(name string) string { return dependency(name, "false", "null", "null") }
	provider := func(unmetNames string, configuration, secret string) string {
		return `{"code":"acme","name":"Acme <AI>","unmet":[` + unmetNames + `],"dependencies":[` +
			strings.Join([]string{configuration, secret, unmet("contract"), unmet("legal_approval")}, ",") + `],"per_minute":null,"in_flight":null,"paused_at":null,"pause_note":null,` +
			`"pause_reason":null,"paused_by":null,"throttled_until":null,"jobs_waiting":0,"jobs_leased":0}`
	}
	worker := func(id, name, providers, revoked string) string {
		return `{"id":"` + id + `","name":"` + name + `","providers":` + providers +
			`,"created_at":"{time}","last_seen_at":null,"revoked_at":` + revoked
	}
	const limited = "Provider acme: limit per minute 600, limit in flight "
	s.run(t, []step{
		importSample,
		{line: "providers met -note 'in the vault' acme secret",
			stdout: "Dependency secret of provider acme is recorded as met. Unmet dependencies: configuration, contract, legal_approval.\n"},
		{line: "providers unmet acme -note 'rotated' configuration",
			stdout: "Dependency configuration of provider acme is recorded as unmet. Unmet dependencies: configuration, contract, legal_approval.\n"},
		{line: "providers list", stdout: `
CODE  NAME       CONFIGURATION  SECRET  CONTRACT  LEGAL_APPROVAL  PER MINUTE  IN FLIGHT  PAUSED
acme  Acme <AI>  unmet          met     unmet     unmet           none        none       no
`},
		{line: "providers list -json", stdout: "[" + provider(`"configuration","contract","legal_approval"`,
			dependency("configuration", "false", `"rotated"`, `"{time}"`),
			dependency("secret", "true", `"in the vault"`, `"{time}"`)) + "]\n"},
		fails("providers met unknown secret -note x", "there is no provider \"unknown\"; see aiv providers list"),
		{line: "providers set acme -per-minute 600 -in-flight 0", stdout: limited + "0; not paused.\n"},
		{line: "providers set acme -in-flight none", stdout: limited + "none; not paused.\n"},
		{line: "providers pause acme -note 'incident 12\x1b[7m'", stdout: limited + "none; paused: incident 12\uFFFD[7m.\n"},
		{line: "providers resume acme -note over", stdout: limited + "none; not paused.\n"},
		{line: "workers list", stdout: "There are no workers; create one with aiv workers create.\n"},
		piped(misuse("workers create", "-name w", "the token is a secret; to write it to a pipe or a file, add -json")),
		{line: "workers create -name w -providers acme -json",
			stdout: worker("{wrk_1}", "w", `["acme"]`, "null") + `,"token":"{key1}"}` + "\n",
			stderr: "The token of {wrk_1} is shown only this once; store it now.\n"},
		{line: "workers create -name all -json",
			stdout: worker("{wrk_2}", "all", "null", "null") + `,"token":"{key2}"}` + "\n",
			stderr: "The token of {wrk_2} is shown only this once; store it now.\n"},
		{line: "workers revoke {wrk_1}", stdout: "Worker {wrk_1}, \"w\", is revoked. Jobs that it has return to the queue when their leases end.\n"},
		{line: "workers list -json",
			stdout: "[" + worker("{wrk_1}", "w", `["acme"]`, `"{time}"`) + "}," + worker("{wrk_2}", "all", "null", "null") + "}]\n"},
	})
	prints{"audit list -subject acme", 0, `(?s)providers\.resume.*providers\.pause.*providers\.set`}.expect(t, s.url())
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o600))
}
