package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/store"
	"aiv/store/storetest"
)

// startWork starts `aiv work` with a shell script as its command.
func startWork(t *testing.T, dispatch *process, token, script string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(binary, append(append(workArgs(t, dispatch, token), args...), "--", "sh", "-c", script)...)
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "DIR="+dir)
	w := launch(t, cmd)
	w.dir = dir
	return w
}

// workArgs returns the arguments of aiv that every worker has.
func workArgs(t *testing.T, dispatch *process, token string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	return []string{"work", "-url", strings.TrimSuffix(dispatch.base, "/worker/v1"), "-token-file", file}
}

// TestWorkEnds: on SIGTERM a worker that waits for jobs ends before its claim gets a response. Others give back the jobs of
// commands that do not end, with their processes, after -drain or at a second signal.
func TestWorkEnds(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch, token := startServe(t, url), startDispatch(t, url), newWorker(t, url)
	idle := startWork(t, dispatch, token, `exit 1`)
	dispatch.hasMetrics(t, "aiv_claims_waiting 1")
	const responses = `aiv_requests_total{route="POST /worker/v1/claim",status="200"}`
	before := dispatch.metric(t, responses)
	stops(t, idle)
	dispatch.hasMetrics(t, "aiv_claims_waiting 0", fmt.Sprint(responses, " ", before))

	run := serve.order(t, key.Key, "ends")
	for drain, twice := range map[string]bool{"100ms": false, "10m": true} {
		// The shell outlives its child: a child that init has to reap stays in the process group until then.
		w := startWork(t, dispatch, token, `trap : TERM; sleep 600 & echo $! >"$DIR/pid"; wait; wait`, "-drain", drain)
		running := func() string {
			pid, _ := os.ReadFile(w.dir + "/pid")
			stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
			return fmt.Sprint(len(pid) > 0 && err == nil && !strings.Contains(string(stat), ") Z "))
		}
		wait(t, "the child runs", "true", running)
		if twice {
			w.cmd.Process.Signal(syscall.SIGTERM)
			w.awaitLog(t, "signal again to kill")
		}
		stops(t, w)
		wait(t, "the child runs after SIGTERM", "false", running)
		serve.awaitRun(t, key.Key, run, `"queued":6`)
	}
}

// workScript answers each job with its id and attempt, and not while the file hold exists in the folder of its process.
const workScript = `
job=$(cat)
id=${job#*\"id\":\"}; id=${id%%\"*}
attempt=${job#*\"attempt\":}; attempt=${attempt%%,*}
sleep 0.05
while [ -e "$DIR/hold" ]; do : >"$DIR/held"; sleep 0.05; done
printf '{"text":"of %s in attempt %s","citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}' "$id" "$attempt"
`

// TestFaultWork kills aiv work processes that have jobs. Their jobs come back when the leases end, and every job is
// completed by one attempt. The short form ends the leases.
func TestFaultWork(t *testing.T) {
	t.Parallel()
	runs, kills := byForm(10, 200), byForm(1, 50)
	url, pool, _, key := databaseOfCustomer(t)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	workers, ids := make([]*process, 3), make([]store.ID, 3)
	start := func(i int) {
		workers[i] = startWork(t, dispatch, newWorker(t, url), workScript, "-parallel", "4", "-lease", byForm("10m", "10s"))
		ids[i] = storetest.Value[store.ID](t, pool, `SELECT id FROM workers ORDER BY created_at DESC LIMIT 1`)
	}
	final := func() int { return number(t, pool, `SELECT count(*) FROM job_results`) }
	// hold holds a command of a worker, before all jobs are completed: its job cannot be settled, not even by a request in
	// flight when the process is killed.
	hold := func(i int) {
		t.Helper()
		must(t, os.WriteFile(workers[i].dir+"/hold", nil, 0o600))
		storetest.Eventually(t, "a command is held", func() bool {
			_, err := os.Stat(workers[i].dir + "/held")
			return err == nil
		})
	}
	start(0)
	for n := range runs {
		serve.order(t, key.Key, fmt.Sprint("work-", n))
	}
	hold(0) // before others can have all jobs
	start(1)
	start(2)
	var killed []store.ID
	settled := make(settlements) // that an aiv work reported
	for n := range kills {
		i := n % len(workers)
		next := 6*runs*(n+1)/(kills+2) + rand.IntN(5)
		storetest.Eventually(t, "jobs are completed", func() bool { return final() >= next })
		hold(i)
		workers[i].kill()
		must(t, os.Remove(workers[i].dir+"/hold"))
		killed = append(killed, ids[i])
		workers[i].addSettlements(t, settled)
		start(i)
	}
	wait(t, "all jobs", fmt.Sprintf("^%d$", 6*runs), func() string {
		if !storetest.Long() {
			endLeases(t, pool, killed...)
		}
		return fmt.Sprint(final())
	})
	stops(t, workers...)
	for _, w := range workers {
		w.addSettlements(t, settled)
	}

	stored, lost := storedAnswers(t, pool, settled)
	again := number(t, pool, `SELECT count(*) FROM job_results WHERE attempts > 1`)
	if len(stored) != 6*runs || again == 0 {
		t.Errorf("%d jobs have an answer, want %d; %d were claimed again, want some", len(stored), 6*runs, again)
	}
	t.Logf("aiv work: %d kills: %d jobs completed, %d acknowledged, lost %d; %d were claimed again", kills, len(stored), len(settled), lost, again)
}

// addSettlements reads from the log which attempts were settled.
func (w *process) addSettlements(t *testing.T, settled settlements) {
	t.Helper()
	for line := range strings.Lines(w.log.String()) {
		var l struct {
			ID, State string
			Attempt   int
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.State == "settled" { // the last line of a killed process may be cut
			settled.add(t, l.ID, l.Attempt)
		}
	}
}

// TestEngineAnswers: a rejected key pauses the provider and ends the worker, and no job fails. Started again, the
// worker waits until an operator resumes the provider. Then it answers the run, and ends when its terminal is closed. The
// tests of package engines show that the key is in no answer and no line of the log.
func TestEngineAnswers(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch, token := startServe(t, url), startDispatch(t, url), newWorker(t, url)
	run := serve.order(t, key.Key, "engine")
	fake := enginestest.New(t, "openai")
	startEngine := func(key string) *process {
		file := filepath.Join(t.TempDir(), "key")
		must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
		return launch(t, exec.Command(binary, append(workArgs(t, dispatch, token), "-engine", "openai", "-provider", "p",
			"-engine-url", fake.URL, "-engine-key-file", file, "-parallel", "3")...))
	}
	refused := startEngine("wrong-key-0123456789-abcdefghijklmnopqrstuvwxyz")
	const want = "It is paused; correct the cause, then run aiv providers resume p -note TEXT\n"
	if err := refused.wait(); fmt.Sprint(err) != "exit status 1" || !strings.HasSuffix(refused.log.String(), want) {
		t.Fatalf("aiv work ended with %v, and its log does not end with %q: %s", err, want, tail(refused.log.String()))
	}
	dispatch.hasMetrics(t, `aiv_provider_unavailable{provider="p",reason="secret"} 1`, `aiv_provider_paused{provider="p"} 1`)
	serve.awaitRun(t, key.Key, run, `"queued":6,"running":0,"completed":0,"failed":0`)

	w := startEngine(enginestest.Key)
	dispatch.hasMetrics(t, "aiv_claims_waiting 1")
	storetest.Equal(t, 0, len(fake.Requests()), "requests while the provider is paused")
	short := enginestest.Answer(200, fake.Short())
	fake.Then(short, short, short, short, short, func(rw http.ResponseWriter, _ *http.Request) { // net/http would log what follows
		conn, _, err := rw.(http.Hijacker).Hijack()
		if err == nil {
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s%s",
				len(fake.Short()), fake.Short(), enginestest.Key)
			conn.Read(make([]byte, 1)) // until the client closes it
		}
	})
	cli[any](t, url, "providers", "resume", "p", "-note", "a new key")
	serve.awaitRun(t, key.Key, run, `"status":"completed"`)
	results := serve.get(t, "/v1/runs/"+run+"/results", key.Key).body
	if strings.Count(results, `"usage":{"input_tokens":100,"output_tokens":20,`) != 6 || strings.Count(results, `"text":"Kovalt`) != 6 {
		t.Errorf("the 6 answers are %s", results)
	}
	dispatch.hasMetrics(t, `aiv_answer_tokens_total{provider="p",kind="input"} 600`)
	w.cmd.Process.Signal(syscall.SIGHUP)
	must(t, w.wait())
	w.awaitLog(t, `"requests":1,"status":200`)
	if log := refused.log.String() + w.log.String(); strings.Contains(log, "-key-0123456789-") || strings.Contains(log, "Kovalt") {
		t.Errorf("the log has a key or an answer: %s", tail(log))
	}
}

// TestEngineTry: -try sends its request through the proxy of the environment.
func TestEngineTry(t *testing.T) {
	t.Parallel()
	tunnels := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnels <- r.Method + " " + r.RequestURI
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	cmd := exec.Command(binary, "work", "-engine", "openai", "-try", "-model", "gpt-6-sol", "-engine-url", "https://example.com/v1")
	cmd.Env = []string{"OPENAI_API_KEY=" + enginestest.Key, "HTTPS_PROXY=" + proxy.URL}
	p := launch(t, cmd)
	if err := p.wait(); fmt.Sprint(err) != "exit status 1" || !strings.Contains(p.log.String(), `"provider_unreachable"`) ||
		len(tunnels) == 0 || <-tunnels != "CONNECT example.com:443" {
		t.Errorf("%v, %s", err, p.log.String())
	}
}
