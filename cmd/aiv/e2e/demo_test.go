package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

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
	api, keys := &process{base: exported(text, "BASE")}, []string{exported(text, "KEY")}
	testStory(t, api, keys[0]) // before the printed commands, which add runs and brands to the account
	pasted := paste(t, text)
	pasteWebhook(t, pasted, after(text, "Receive webhooks"))
	pasteWork(t, api, pasted, after(text, "Start a worker for the provider mistral"))
	folder, _, _ := strings.Cut(after(text, "-data-dir "), ")")
	if code, stdout, stderr := aiv(t.Context(), "verify", "-data-dir", folder); code != 0 {
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

// exported returns the value of a variable that the printed commands set.
func exported(text, name string) string {
	value, _, _ := strings.Cut(after(text, "export "+name+"="), "\n")
	return value
}

// testStory: the API tells what happened to the sample account in twelve weeks: one brand gains and one model drops it,
// there is a new competitor, a model with few answers, a week without answers, a gap among the sources, and alerts.
func testStory(t *testing.T, api *process, key string) {
	list := func(path string, parameters ...string) (data []sample) {
		t.Helper()
		values := url.Values{}
		for i := 0; i < len(parameters); i += 2 {
			values.Set(parameters[i], parameters[i+1])
		}
		a := api.get(t, path+"?"+values.Encode(), key)
		var page struct{ Data []sample }
		if err := json.Unmarshal([]byte(a.body), &page); err != nil || a.status != 200 || len(page.Data) == 0 {
			t.Fatalf("%s %v: %d %s", path, parameters, a.status, a.body)
		}
		return page.Data
	}
	ids := make(map[string]string)
	for _, b := range list("/v1/brands") {
		ids[b.Name] = b.ID
		if slices.ContainsFunc(b.Domains, func(d string) bool { return !strings.Contains(d, ".example.") }) {
			t.Errorf("%s has the domains %q, which somebody could register", b.Name, b.Domains)
		}
	}
	weeks := func(brand string) []sample {
		t.Helper()
		rows := list("/v1/metrics", "group_by", "week", "brand_id", ids[brand])
		if len(rows) < 12 {
			t.Fatalf("%d weeks, want 12", len(rows))
		}
		return rows[:12]
	}
	own := weeks("Fernmark")
	for n, row := range own {
		if none := row.Mention.Value == nil; none != (n == 3) {
			t.Errorf("week %d has no answers: %t", n+1, none)
		}
	}
	for n, row := range weeks("Quillane") {
		if rate := row.Mention; n < 5 && rate.Count != 0 || n > 9 && *rate.Value < 0.2 {
			t.Errorf("week %d: %+v mention the new competitor, want none at first and many at last", n+1, rate)
		}
	}
	last, err := time.Parse(time.DateOnly, own[11].Group.Week)
	must(t, err)
	day := func(weeks int) string { return last.AddDate(0, 0, 7*weeks).Format(time.DateOnly) }
	for _, test := range []struct{ brand, models, want string }{
		{"Fernmark", "perplexity/sonar-pro", "up"}, {"Fernmark", "openai/gpt-5-search", "down"}, {"Quillane", "", "up"},
		{"Alderway", "", "no_clear_change"},
	} {
		filters := []string{"baseline_from", day(-11), "baseline_to", day(-5), "from", day(-5), "to", day(1), "brand_id", ids[test.brand]}
		if test.models != "" {
			filters = append(filters, "model_id", test.models)
		}
		if got := list("/v1/metrics/compare", filters...)[0].Mention.Verdict; got != test.want {
			t.Errorf("%s of %q: %s, want %s", test.brand, test.models, got, test.want)
		}
	}
	has := func(what string, found []sample, is func(sample) bool) {
		t.Helper()
		if !slices.ContainsFunc(found, is) {
			t.Errorf("there is no %s in %+v", what, found)
		}
	}
	has("model with few answers", list("/v1/metrics", "group_by", "model", "brand_id", ids["Fernmark"]), func(s sample) bool {
		return s.Group.Model == "mistral/le-chat" && s.Mention.Of > 2 && s.Mention.Of < 10 && s.Mention.LowSample
	})
	has("gap", list("/v1/sources", "gap", "true", "owner", "other"), func(s sample) bool {
		return s.Host == "trailpost.example.net" && s.Answers >= 10
	})
	has("recommendation", list("/v1/recommendations", "status", "suggested"), func(s sample) bool {
		return s.Type == "citation_gap" && strings.Contains(s.Title, "trailpost.example.net")
	})
	for kind, model := range map[string]string{"visibility_drop": "openai/gpt-5-search", "visibility_gain": "perplexity/sonar-pro"} {
		has(kind, list("/v1/alerts", "limit", "100"), func(s sample) bool {
			return s.Type == kind && s.Model == model && s.Status == "open" && s.Brand == ids["Fernmark"] && s.Schedule != nil
		})
	}
}

// A sample is an item of any list of the API.
type sample struct {
	ID, Name, Type, Title, Status, Host string
	Domains                             []string
	Answers                             int
	Model                               string  `json:"model_id"`
	Brand                               string  `json:"brand_id"`
	Schedule                            *string `json:"schedule_id"`
	Group                               struct {
		Model string `json:"model_id"`
		Week  string
	}
	Mention struct {
		Value     *float64
		Count, Of int
		LowSample bool `json:"low_sample"`
		Verdict   string
	} `json:"mention_rate"`
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
	must(t, err)
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
	variables := strings.Join(regexp.MustCompile(`(?m)^  export .*\n`).FindAllString(pasted, -1), "")
	ask, _, _ := strings.Cut(after(pasted, "  NEW=$("), "  RUN=$(")
	return variables + "  NEW=$(" + ask
}

// paragraph returns the commands between the first two empty lines of a text.
func paragraph(text string) string {
	commands, _, _ := strings.Cut(after(text, "\n\n"), "\n\n")
	return commands
}

// pasteWork pastes the commands of a worker for another provider, orders a run there, and waits for its answers.
func pasteWork(t *testing.T, api *process, pasted, text string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", strings.Replace(paragraph(text), "\n/", "\nexec /", 1))
	cmd.Dir = t.TempDir()
	worker := launch(t, cmd)
	out, err := exec.Command("bash", "-c", askIn(pasted)+"ask second-$NEW mistral/le-chat").CombinedOutput()
	must(t, err)
	run, key := regexp.MustCompile("run_[0-9a-z]{26}").FindString(after(string(out), "HTTP/1.1 202 ")), exported(pasted, "KEY")
	api.awaitRun(t, key, run, `"status":"completed"`)
	if a := api.get(t, "/v1/runs/"+run+"/results?limit=2", key); !strings.Contains(a.body, "A sample answer to it-") {
		t.Errorf("the results of a pasted worker: %d %s", a.status, a.body)
	}
	stops(t, worker)
}

// pasteWebhook pastes the commands that register and start a receiver, and waits until it prints the event of the run.
func pasteWebhook(t *testing.T, pasted, text string) {
	t.Helper()
	// Other programs use 127.0.0.1, so that none takes the port before the receiver.
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), 1+rand.N(254), 1+rand.N(254)))
	must(t, err)
	l.Close()
	cmd := exec.Command("bash", "-c", askIn(pasted)+strings.ReplaceAll(paragraph(text), "127.0.0.1:8090", l.Addr().String())+"\nwait")
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the receiver ends with the shell
	shell := launch(t, cmd)
	defer func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		shell.wait()
	}()
	wait(t, "the event of a pasted run", `evt_[0-9a-z]{26} run\.completed \{"type":"run\.completed"`, shell.log.String)
}
