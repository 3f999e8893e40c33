package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/store/storetest"
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
	must(t, os.Chmod(out, 0o640))
	s := &story{env: map[string]string{"DATABASE_URL": storetest.URL(t)}}
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
	if diff := cmp.Diff(sampleCatalog, string(text)); err != nil || diff != "" {
		t.Errorf("%v, exported file (-want +got):\n%s", err, diff)
	}
	info, err := os.Stat(out)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, mode %v; want that of the file that was replaced", err, info.Mode())
	}
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
	s := &story{env: map[string]string{"DATABASE_URL": storetest.URL(t)}}
	rest := `,{"name":"contract","met":false,"note":null,"changed_at":null},{"name":"legal_approval","met":false,"note":null,"changed_at":null}],"per_minute":null,"in_flight":null,"paused_at":null,"pause_note":null,"pause_reason":null,"paused_by":null,"throttled_until":null,"jobs_waiting":0,"jobs_leased":0}`
	s.run(t, []step{
		{line: "providers list -json", stdout: "[]\n"},
		{line: "catalog import -", stdin: sampleCatalog, stdout: "Imported 1 provider, 1 model, 1 question and 1 methodology.\n"},
		{
			line: "providers met acme configuration -note 'set up in config 12' -json",
			stdout: `{"code":"acme","name":"Acme <AI>","unmet":["secret","contract","legal_approval"],"dependencies":[` +
				`{"name":"configuration","met":true,"note":"set up in config 12","changed_at":"{time}"},` +
				`{"name":"secret","met":false,"note":null,"changed_at":null}` + rest + "\n",
		},
		{
			line:   "providers met -note 'in the vault' acme secret",
			stdout: "Dependency secret of provider acme is recorded as met. Unmet dependencies: contract, legal_approval.\n",
		},
		{
			line:   "providers unmet acme -note 'rotated' configuration",
			stdout: "Dependency configuration of provider acme is recorded as unmet. Unmet dependencies: configuration, contract, legal_approval.\n",
		},
		{
			line: "providers list",
			stdout: `
CODE  NAME       CONFIGURATION  SECRET  CONTRACT  LEGAL_APPROVAL  PER MINUTE  IN FLIGHT  PAUSED
acme  Acme <AI>  unmet          met     unmet     unmet           none        none       no
`,
		},
		{
			line: "providers list -json",
			stdout: `[{"code":"acme","name":"Acme <AI>","unmet":["configuration","contract","legal_approval"],"dependencies":[` +
				`{"name":"configuration","met":false,"note":"rotated","changed_at":"{time}"},` +
				`{"name":"secret","met":true,"note":"in the vault","changed_at":"{time}"}` + strings.TrimSuffix(rest, "\n") + "]\n",
		},
		{line: "providers met unknown secret -note x", code: 1, stderr: "aiv: there is no provider \"unknown\"; see aiv providers list\n"},
		{line: "providers met acme luck -note x", code: 2,
			stderr: "aiv: DEPENDENCY must be one of configuration, secret, contract, legal_approval, not \"luck\"\nRun `aiv providers met -h` for help.\n"},
		{line: "providers met acme secret -note ' '", code: 2, stderr: "aiv: -note is empty\nRun `aiv providers met -h` for help.\n"},
		{line: "providers set acme", code: 2, stderr: "aiv: nothing to set: give -per-minute or -in-flight\nRun `aiv providers set -h` for help.\n"},
		{line: "providers set none -in-flight 1", code: 1, stderr: "aiv: there is no provider \"none\"; see aiv providers list\n"},
		{line: "providers set acme -per-minute 600 -in-flight 0", stdout: "Provider acme: limit per minute 600, limit in flight 0; not paused.\n"},
		{line: "providers set acme -in-flight none", stdout: "Provider acme: limit per minute 600, limit in flight none; not paused.\n"},
		{line: "providers pause acme -note 'incident 12'", stdout: "Provider acme: limit per minute 600, limit in flight none; paused: incident 12.\n"},
		{line: "providers resume acme -note over", stdout: "Provider acme: limit per minute 600, limit in flight none; not paused.\n"},
		{line: "workers list", stdout: "There are no workers; create one with aiv workers create.\n"},
		{line: "workers create -name w -providers acme,none", code: 1, stderr: "aiv: there is no provider \"none\"; see aiv providers list\n"},
		{line: "workers create -name w", piped: true, code: 2,
			stderr: "aiv: the token is a secret; to write it to a pipe or a file, add -json\nRun `aiv workers create -h` for help.\n"},
		{line: "workers create -name w -providers acme -json", stdout: `{"id":"{wrk_1}","name":"w","providers":["acme"],"created_at":"{time}","last_seen_at":null,"revoked_at":null,"token":"{key1}"}` + "\n",
			stderr: "The token of {wrk_1} is shown only this once; store it now.\n"},
		{line: "workers create -name all -json", stdout: `{"id":"{wrk_2}","name":"all","providers":null,"created_at":"{time}","last_seen_at":null,"revoked_at":null,"token":"{key2}"}` + "\n",
			stderr: "The token of {wrk_2} is shown only this once; store it now.\n"},
		{line: "workers revoke {wrk_1}", stdout: "Worker {wrk_1}, \"w\", is revoked. Jobs that it has return to the queue when their leases end.\n"},
		{line: "workers revoke {key1}", code: 2, stderr: "aiv: ID must be a worker's id, wrk_ and 26 characters; see aiv workers list\nRun `aiv workers revoke -h` for help.\n"},
		{line: "workers list -json", stdout: `[{"id":"{wrk_1}","name":"w","providers":["acme"],"created_at":"{time}","last_seen_at":null,"revoked_at":"{time}"},` +
			`{"id":"{wrk_2}","name":"all","providers":null,"created_at":"{time}","last_seen_at":null,"revoked_at":null}]` + "\n"},
	})
	_, stdout, _ := aiv(t.Context(), "audit", "list", "-subject", "acme", "-database-url", s.env["DATABASE_URL"])
	for _, action := range []string{"providers.set", "providers.pause", "providers.resume"} {
		if !strings.Contains(stdout, action) {
			t.Errorf("no %s in the audit log\n%s", action, stdout)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o600))
}
