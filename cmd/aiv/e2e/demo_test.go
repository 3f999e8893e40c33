package e2e

import (
	"bufio"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestDemoTellsItsStory starts aiv demo twice in one folder. The sample account tells its story, the printed commands
// work as they are, the second start revokes the key of the first, and no file contains a key.
func TestDemoTellsItsStory(t *testing.T) {
	t.Parallel()
	base, err := storetest.MkdirTemp("aiv-demo-test-") // PostgreSQL's account can't enter t.TempDir()
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	must(t, os.Chmod(base, 0o755))
	dir := filepath.Join(base, "demo")

	var keys []string
	for start := range 2 {
		text, stop := startDemo(t, dir)
		_, rest, _ := strings.Cut(text, "export KEY=")
		key, _, _ := strings.Cut(rest, "\n")
		keys = append(keys, key)
		if start == 0 {
			t.Run("story", func(t *testing.T) { testStory(t, text) })
		}
		_, pasted, ok := strings.Cut(text, "Paste these into another terminal:\n")
		if !ok {
			t.Fatalf("aiv demo printed no commands:\n%s", text)
		}
		pasted, work, _ := strings.Cut(pasted, "Start a worker for the provider mistral")
		pasted = strings.Replace(pasted, "sleep 3", "true", 1) // for a recount, which the test does not read
		commands := "set -e\n" + strings.Replace(pasted, "sleep 5", untilCompleted, 1)
		out, err := exec.Command("bash", "-c", commands).CombinedOutput()
		if err != nil {
			t.Fatalf("the printed commands: %v\n%s", err, out)
		}
		for _, want := range []string{`"scopes":[`, "HTTP/1.1 202 Accepted", `"total_jobs":6`, `"id":"rec_`, `"severity":"high"`,
			`"status":"completed"`, "Questa è una risposta di esempio", `"domain":"runlab.example.org"`,
			`"brand_name":"Fernmark"`, `"host":"runlab.example.org"`, `"aliases":["FMK","Aeolo"]`} {
			if !strings.Contains(string(out), want) {
				t.Errorf("start %d: the printed commands do not print %s", start, want)
			}
		}
		work, webhook, _ := strings.Cut(work, "Receive webhooks")
		if start == 0 {
			pasteWebhook(t, pasted, webhook)
			pasteWork(t, pasted, work)
			_, folder, _ := strings.Cut(text, "-data-dir ")
			folder, _, _ = strings.Cut(folder, ")")
			if code, stdout, stderr := aiv(t.Context(), "verify", "-data-dir", folder); code != 0 {
				t.Errorf("aiv verify: %s %s", stdout, stderr)
			}
		}
		if start == 1 {
			_, base, _ := strings.Cut(pasted, "export BASE=")
			base, _, _ = strings.Cut(base, "\n")
			if a := (&process{base: base}).get(t, "?path=/v1/me", keys[0]); a.status != 401 {
				t.Errorf("the key of the first start after the second one: %d %s", a.status, a.body)
			}
		}
		stop([]os.Signal{syscall.SIGTERM, syscall.SIGHUP}[start]) // the second one is that of a closed terminal
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
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
	})
	must(t, err)
}

// untilCompleted waits until the run of the printed commands is completed.
const untilCompleted = `for _ in $(seq 240); do
  curl -s "$BASE?path=/v1/runs/$RUN" -H "Authorization: Bearer $KEY" | grep -q '"status":"completed"' && break; sleep 0.5
done`

// askIn returns the variables and the function ask of the printed commands, without the requests before them.
func askIn(pasted string) string {
	variables := ""
	for line := range strings.Lines(pasted) {
		if strings.HasPrefix(line, "  export ") {
			variables += line
		}
	}
	_, ask, _ := strings.Cut(pasted, "  NEW=$(")
	ask, _, _ = strings.Cut(ask, "  RUN=$(")
	return variables + "  NEW=$(" + ask
}

// pasteWork pastes the commands of a worker for another provider, orders a run there, and waits for its answers.
func pasteWork(t *testing.T, pasted, work string) {
	t.Helper()
	_, work, _ = strings.Cut(work, "\n\n")
	work, _, _ = strings.Cut(work, "\n\n")
	worker := exec.Command("bash", "-c", strings.Replace(work, "\n/", "\nexec /", 1))
	worker.Dir = t.TempDir()
	var log logBuffer
	worker.Stderr = &log
	must(t, startCommand(worker))
	defer func() {
		worker.Process.Signal(syscall.SIGTERM)
		if err := worker.Wait(); err != nil {
			t.Errorf("aiv work ended with %v\n%s", err, log.end())
		}
	}()
	out, err := exec.Command("bash", "-c", askIn(pasted)+"ask second-$NEW mistral/le-chat").CombinedOutput()
	_, created, ok := strings.Cut(string(out), "HTTP/1.1 202 ")
	if err != nil || !ok {
		t.Fatalf("creating a run: %v\n%s", err, out)
	}
	run, api, key := regexp.MustCompile("run_[0-9a-z]{26}").FindString(created), &process{base: exported(pasted, "BASE")}, exported(pasted, "KEY")
	wait(t, "the run of a pasted worker", `"status":"completed"`, func() string { return api.get(t, "/v1/runs/"+run, key).body })
	if a := api.get(t, "/v1/runs/"+run+"/results?limit=2", key); !strings.Contains(a.body, "A sample answer to it-") {
		t.Errorf("the results of a pasted worker: %d %s", a.status, a.body)
	}
}

// pasteWebhook pastes the commands that register and start a receiver, and waits until it prints the event of the run.
func pasteWebhook(t *testing.T, pasted, webhook string) {
	t.Helper()
	_, webhook, _ = strings.Cut(webhook, "\n\n")
	webhook, _, _ = strings.Cut(webhook, "\n\n")
	shell := exec.Command("bash", "-c", askIn(pasted)+strings.ReplaceAll(webhook, "127.0.0.1:8090", freeAddress(t))+"\nwait")
	shell.Dir = t.TempDir()
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the receiver ends with the shell
	var printed logBuffer
	shell.Stdout, shell.Stderr = &printed, &printed
	must(t, startCommand(shell))
	defer func() {
		syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
		shell.Wait()
	}()
	wait(t, "the event of a pasted run", `evt_[0-9a-z]{26} run\.completed \{"type":"run\.completed"`, printed.String)
}

// startDemo starts aiv demo and returns what it prints when it serves.
func startDemo(t *testing.T, dir string) (text string, stop func(os.Signal)) {
	t.Helper()
	cmd := exec.Command(binary, "demo", "-data-dir", dir, "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0")
	var stderr logBuffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, startCommand(cmd))
	t.Cleanup(func() { cmd.Process.Kill() })
	printed, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		var b strings.Builder
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			b.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "kill %%") {
				printed <- b.String()
			}
		}
		ended <- cmd.Wait()
	}()
	select {
	case text = <-printed:
	case err := <-ended:
		t.Fatalf("aiv demo ended: %v\n%s", err, stderr.end())
	case <-time.After(patience):
		t.Fatalf("aiv demo printed nothing\n%s", stderr.end())
	}
	return text, func(signal os.Signal) {
		t.Helper()
		client.CloseIdleConnections() // as process.stop does
		cmd.Process.Signal(signal)
		if err := awaitEnd(t, "aiv demo", ended); err != nil {
			t.Errorf("after %v aiv demo ended with %v\n%s", signal, err, stderr.end())
		}
	}
}
