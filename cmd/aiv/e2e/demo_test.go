package e2e

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

// TestDemoTellsItsStory starts aiv demo twice in one folder. The sample account tells its story, the printed commands
// work as they are, the second start prints another key and revokes the one of the first, and no file contains a key.
func TestDemoTellsItsStory(t *testing.T) {
	t.Parallel()
	base, err := storetest.MkdirTemp("aiv-demo-test-") // PostgreSQL's account can't enter t.TempDir()
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	must(t, os.Chmod(base, 0o755))
	dir := filepath.Join(base, "demo")

	first, text := startDemo(t, dir)
	keys := []string{exported(text, "KEY")}
	t.Run("story", func(t *testing.T) { testStory(t, text) })
	pasted := paste(t, text)
	pasteWebhook(t, pasted, after(text, "Receive webhooks"))
	pasteWork(t, pasted, after(text, "Start a worker for the provider mistral"))
	folder, _, _ := strings.Cut(after(text, "-data-dir "), ")")
	if code, stdout, stderr := aiv(t.Context(), "verify", "-data-dir", folder); code != 0 {
		t.Errorf("aiv verify: %s %s", stdout, stderr)
	}
	stops(t, first)

	second, text := startDemo(t, dir)
	keys = append(keys, exported(text, "KEY"))
	api := &process{base: exported(text, "BASE")}
	api.serves(t, keys[1])
	if a := api.get(t, "?path=/v1/me", keys[0]); a.status != 401 {
		t.Errorf("the key of the first start after the second one: %d %s", a.status, a.body)
	}
	client.CloseIdleConnections()
	second.cmd.Process.Signal(syscall.SIGHUP) // the terminal is closed
	must(t, second.wait())
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, key := range keys {
			if strings.Contains(string(content), key) {
				t.Errorf("%s contains a key", path)
			}
		}
		return err
	}))
}

// startDemo starts aiv demo and returns what it prints when it serves.
func startDemo(t *testing.T, dir string) (p *process, text string) {
	t.Helper()
	var stdout logBuffer
	// PostgreSQL's account must be able to enter the folders that aiv makes.
	cmd := exec.Command("sh", append([]string{"-c", `umask 022; exec "$0" "$@"`, binary}, onFreePorts("demo", "-data-dir", dir)...)...)
	cmd.Stdout = &stdout
	p = launch(t, cmd)
	storetest.Eventually(t, "aiv demo prints its commands", func() bool {
		p.isRunning(t)
		text = stdout.String()
		return strings.Contains(after(text, "kill %%"), "\n")
	})
	return p, text
}

// after returns what follows the first mark in a text.
func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}

// paragraph returns the commands between the first two empty lines of a text.
func paragraph(text string) string {
	commands, _, _ := strings.Cut(after(text, "\n\n"), "\n\n")
	return commands
}

// exported returns the value of a variable that the printed commands set.
func exported(text, name string) string {
	value, _, _ := strings.Cut(after(text, "export "+name+"="), "\n")
	return value
}

// paste runs the printed commands up to those of a worker, and returns them. It waits until the run is completed.
func paste(t *testing.T, text string) (pasted string) {
	t.Helper()
	const untilCompleted = `for _ in $(seq 240); do
  curl -s "$BASE?path=/v1/runs/$RUN" -H "Authorization: Bearer $KEY" | grep -q '"status":"completed"' && break; sleep 0.5
done`
	pasted, _, _ = strings.Cut(after(text, "Paste these into another terminal:\n"), "Start a worker for the provider mistral")
	pasted = strings.Replace(pasted, "sleep 3", "true", 1) // for a recount, which the test does not read
	out, err := exec.Command("bash", "-c", "set -e\n"+strings.Replace(pasted, "sleep 5", untilCompleted, 1)).CombinedOutput()
	if err != nil {
		t.Fatalf("the printed commands: %v\n%s", err, out)
	}
	for _, want := range []string{`"scopes":[`, "HTTP/1.1 202 Accepted", `"total_jobs":6`, `"id":"rec_`, `"severity":"high"`,
		`"status":"completed"`, "Questa è una risposta di esempio", `"domain":"runlab.example.org"`,
		`"brand_name":"Fernmark"`, `"host":"runlab.example.org"`, `"aliases":["FMK","Aeolo"]`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the printed commands do not print %s", want)
		}
	}
	return pasted
}

// askIn returns the variables and the function ask of the printed commands, without the requests before them.
func askIn(pasted string) string {
	variables := ""
	for line := range strings.Lines(pasted) {
		if strings.HasPrefix(line, "  export ") {
			variables += line
		}
	}
	ask, _, _ := strings.Cut(after(pasted, "  NEW=$("), "  RUN=$(")
	return variables + "  NEW=$(" + ask
}

var runID = regexp.MustCompile("run_[0-9a-z]{26}")

// pasteWork pastes the commands of a worker for another provider, orders a run there, and waits for its answers.
func pasteWork(t *testing.T, pasted, text string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", strings.Replace(paragraph(text), "\n/", "\nexec /", 1))
	cmd.Dir = t.TempDir()
	worker := launch(t, cmd)
	out, err := exec.Command("bash", "-c", askIn(pasted)+"ask second-$NEW mistral/le-chat").CombinedOutput()
	created := after(string(out), "HTTP/1.1 202 ")
	if err != nil || created == "" {
		t.Fatalf("creating a run: %v\n%s", err, out)
	}
	run, api, key := runID.FindString(created), &process{base: exported(pasted, "BASE")}, exported(pasted, "KEY")
	api.awaitRun(t, key, run, `"status":"completed"`)
	if a := api.get(t, "/v1/runs/"+run+"/results?limit=2", key); !strings.Contains(a.body, "A sample answer to it-") {
		t.Errorf("the results of a pasted worker: %d %s", a.status, a.body)
	}
	stops(t, worker)
}

// pasteWebhook pastes the commands that register and start a receiver, and waits until it prints the event of the run.
func pasteWebhook(t *testing.T, pasted, text string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", askIn(pasted)+strings.ReplaceAll(paragraph(text), "127.0.0.1:8090", freeAddress(t))+"\nwait")
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the receiver ends with the shell
	shell := launch(t, cmd)
	defer func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		shell.wait()
	}()
	wait(t, "the event of a pasted run", `evt_[0-9a-z]{26} run\.completed \{"type":"run\.completed"`, shell.log.String)
}
