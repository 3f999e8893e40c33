package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
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
// work as they are, the second start prints another key and revokes the first one, and no file contains a key.
func TestDemoTellsItsStory(t *testing.T) {
	t.Parallel()
	base, err := storetest.MkdirTemp("aiv-demo-test-") // PostgreSQL's account can't enter t.TempDir()
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	must(t, os.Chmod(base, 0o755))
	dir := filepath.Join(base, "demo")

	first, text := startDemo(t, dir)
	api, keys := &process{base: exported(text, "BASE")}, []string{exported(text, "KEY")}
	testStory(t, api, keys[0], exported(text, "BRAND")) // before the printed commands, which add runs and brands to the account
	paste(t, api, text)
	folder, _, _ := strings.Cut(after(text, "-data-dir "), ")")
	if code, stdout, stderr := aiv(t, "verify", "-data-dir", folder); code != 0 {
		t.Errorf("aiv verify: %s %s", stdout, stderr)
	}
	stops(t, first)

	second, text := startDemo(t, dir)
	api, keys = &process{base: exported(text, "BASE")}, append(keys, exported(text, "KEY"))
	api.serves(t, keys[1])
	if a := api.get(t, "?path=/v1/me", keys[0]); a.status != 401 {
		t.Errorf("the key of the first start after the second one: %d %s", a.status, a.body)
	}
	client.CloseIdleConnections()
	second.cmd.Process.Signal(syscall.SIGHUP) // the terminal is closed
	must(t, second.wait())
	for _, key := range keys {
		if files, _ := exec.Command("grep", "-rlaF", key, dir).Output(); len(files) > 0 {
			t.Errorf("files that contain a key: %s", files)
		}
	}
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

// exported returns the value of a variable that the printed commands set.
func exported(text, name string) string {
	value, _, _ := strings.Cut(after(text, "export "+name+"="), "\n")
	return value
}

// testStory: the API tells what happened to the sample account in twelve weeks: its own brand gains on one model, and
// another one drops it; there is a model with few answers, a week without answers, a gap among the sources, and alerts.
func testStory(t *testing.T, api *process, key, own string) {
	get := func(path string) string {
		t.Helper()
		a := api.get(t, path, key)
		if a.status != 200 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		return a.body
	}
	weeks := regexp.MustCompile(`"week":"([^"]+)"[^{]*"mention_rate":\{"value":(\w+)`).FindAllStringSubmatch(
		get("/v1/metrics?group_by=week&brand_id="+own), 12)
	if len(weeks) != 12 || weeks[3][2] != "null" || weeks[4][2] == "null" {
		t.Fatalf("%v, want 12 weeks, of which the fourth has no answers", weeks)
	}
	last, err := time.Parse(time.DateOnly, weeks[11][1])
	must(t, err)
	day := func(weeks int) string { return last.AddDate(0, 0, 7*weeks).Format(time.DateOnly) }
	months := fmt.Sprintf("baseline_from=%s&baseline_to=%s&from=%s&to=%s", day(-11), day(-5), day(-5), day(1))
	for model, want := range map[string]string{"perplexity/sonar-pro": "up", "openai/gpt-5-search": "down"} {
		compared := get("/v1/metrics/compare?" + months + "&brand_id=" + own + "&model_id=" + model)
		storetest.Equal(t, want, member(t, after(compared, `"mention_rate":`), "verdict"), model)
	}
	const opened = `","severity":"\w+","status":"open",[^{}]*"model_id":"%s",[^{}]*"brand_id":"%s","schedule_id":"sched_`
	for _, test := range []struct{ path, pattern string }{
		{"/v1/metrics?group_by=model&brand_id=" + own, `"mistral/le-chat"\},[^{]*"mention_rate":\{[^}]*"of":[3-9],[^}]*"low_sample":true`},
		{"/v1/sources?gap=true&owner=other", `"host":"trailpost\.example\.net",[^{]*"answers":\d\d`},
		{"/v1/recommendations?status=suggested&type=citation_gap", `"title":"[^"]*trailpost\.example\.net`},
		{"/v1/alerts?limit=100", `"visibility_drop` + fmt.Sprintf(opened, "openai/gpt-5-search", own)},
		{"/v1/alerts?limit=100", `"visibility_gain` + fmt.Sprintf(opened, "perplexity/sonar-pro", own)},
	} {
		if body := get(test.path); !regexp.MustCompile(test.pattern).MatchString(body) {
			t.Errorf("%s does not match %s: %s", test.path, test.pattern, body)
		}
	}
}

// paste runs the printed commands in one shell: the requests, a receiver of webhooks and a worker for another provider,
// with a run for each.
func paste(t *testing.T, api *process, text string) {
	t.Helper()
	const untilCompleted = `for _ in $(seq 240); do
  curl -s "$BASE?path=/v1/runs/$RUN" -H "Authorization: Bearer $KEY" | grep -q '"status":"completed"' && break; sleep 0.5
done`
	requests, rest, _ := strings.Cut(after(text, "Paste these into another terminal:\n"), "Start a worker for the provider mistral")
	requests = strings.Replace(requests, "sleep 3", "true", 1) // for a recount, which the test does not read
	requests = strings.Replace(requests, "sleep 5", untilCompleted, 1)
	// Other programs use 127.0.0.1, so that none takes the port before the receiver.
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), 1+rand.N(254), 1+rand.N(254)))
	must(t, err)
	l.Close()
	receive := strings.ReplaceAll(paragraph(after(rest, "Receive webhooks")), "127.0.0.1:8090", l.Addr().String())
	script := "set -e\n" + requests + receive + "\n" + paragraph(rest) + " &\nask second-$NEW mistral/le-chat\nwait"
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the receiver and the worker end with the shell
	shell := launch(t, cmd)
	defer func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		shell.wait()
	}()
	created := regexp.MustCompile(`HTTP/1\.1 202 Accepted\r\n[^{]*\{"id":"(run_[0-9a-z]{26})"`)
	var runs [][]string
	storetest.Eventually(t, "four requests have created runs, one of them again", func() bool {
		runs = created.FindAllStringSubmatch(shell.log.String(), -1)
		return len(runs) == 4
	})
	key := exported(text, "KEY")
	api.awaitRun(t, key, runs[3][1], `"status":"completed"`)
	if a := api.get(t, "/v1/runs/"+runs[3][1]+"/results?limit=2", key); !strings.Contains(a.body, "A sample answer to it-") {
		t.Errorf("the results of the worker: %d %s", a.status, a.body)
	}
	wait(t, "the event of a run", `evt_[0-9a-z]{26} run\.completed \{"type":"run\.completed"`, shell.log.String)
	for _, want := range []string{`"scopes":[`, `"total_jobs":6`, `"id":"rec_`, `"severity":"high"`, `"status":"completed"`,
		"Questa è una risposta di esempio", `"domain":"runlab.example.org"`, `"brand_name":"Fernmark"`, `"host":"runlab.example.org"`,
		`"aliases":["FMK","Aeolo"]`} {
		if !strings.Contains(shell.log.String(), want) {
			t.Errorf("the printed commands do not print %s", want)
		}
	}
}

// paragraph returns the commands between the first two empty lines of a text.
func paragraph(text string) string {
	commands, _, _ := strings.Cut(after(text, "\n\n"), "\n\n")
	return commands
}

// TestCompletionInBash runs the completion script in a real bash.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("bash", "-c", `
aiv() { "$PROGRAM" "$@"; }
source <(aiv completion bash)
complete -p aiv
COMP_WORDS=(aiv keys ro) COMP_CWORD=2; _aiv; echo "${COMPREPLY[@]}"
COMP_WORDS=(aiv keys create -account x -) COMP_CWORD=5; _aiv; echo "${#COMPREPLY[@]} ${COMPREPLY[0]}"
COMP_WORDS=(aiv catalog import '') COMP_CWORD=3; _aiv; echo "${#COMPREPLY[@]}"
`)
	cmd.Env = append(os.Environ(), "PROGRAM="+binary)
	p := launch(t, cmd)
	must(t, p.wait())
	storetest.Equal(t, "complete -o default -F _aiv aiv\nrotate\n9 -account\n0\n", p.log.String(), "completions")
}
