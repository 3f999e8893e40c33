package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aiv/store/private"
	"aiv/store/storetest"
)

// patience bounds the time that tests wait for what must happen.
const patience = storetest.Patience

// A process is a command of aiv that an operator starts and ends.
type process struct {
	cmd         *exec.Cmd
	base, admin string // URLs, of a service
	dir         string // of a worker: what its commands and its token are in
	log         *logBuffer
	ended       chan struct{} // closed when it has ended, with err
	err         error
}

// startServe and startDispatch start `aiv serve` and `aiv dispatch` on the database and wait until they serve.
func startServe(t *testing.T, databaseURL string, args ...string) *process {
	t.Helper()
	return start(t, databaseURL, exec.Command(binary, onFreePorts("serve", args...)...))
}

func startDispatch(t *testing.T, databaseURL string, args ...string) *process {
	t.Helper()
	return start(t, databaseURL, exec.Command(binary, onFreePorts("dispatch", args...)...))
}

func onFreePorts(service string, args ...string) []string {
	return append([]string{service, "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"}, args...)
}

// start starts a service on the database and waits until it serves.
func start(t *testing.T, databaseURL string, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Env = append(cmd.Environ(), "DATABASE_URL="+databaseURL)
	p := launch(t, cmd)
	storetest.Eventually(t, cmd.String()+" serves", func() bool {
		p.isRunning(t)
		return p.readServing(strings.NewReader(p.log.String()))
	})
	return p
}

// launch starts a command, and collects what it prints and does not write elsewhere. It does not outlive the tests, even
// when they are killed.
func launch(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	must(t, readSources())
	p := &process{cmd: cmd, log: &logBuffer{}, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.log
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p.log
	}
	cmd.WaitDelay = 30 * time.Second // if a child that outlives it has its output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	private.DieWithParent(cmd.SysProcAttr, syscall.SIGKILL)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // until the command has ended
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	must(t, <-started)
	t.Cleanup(func() {
		if p.kill(); t.Failed() {
			t.Logf("the end of the log of %s: %s", cmd, tail(p.log.String()))
		}
	})
	return p
}

var readSources = sync.OnceValue(func() error { return storetest.ReadSources("../../..") })

// aiv runs one command, without DATABASE_URL in its environment.
func aiv(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out logBuffer
	cmd := exec.Command(binary, args...)
	cmd.Stdout = &out
	p := launch(t, cmd)
	<-p.ended
	return cmd.ProcessState.ExitCode(), out.String(), p.log.String()
}

// readServing reads the log until the process serves, and sets its addresses.
func (p *process) readServing(log io.Reader) bool {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var l struct{ Msg, Address, Path, Admin string }
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "serving" {
			p.base, p.admin = "http://"+l.Address+l.Path, "http://"+l.Admin
			return true
		}
	}
	return false
}

// isRunning fails the test if the process has ended.
func (p *process) isRunning(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
		t.Fatalf("%s ended: %v", p.cmd, p.err)
	default:
	}
}

// kill ends the process by SIGKILL.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.wait()
}

// wait waits until the process has ended, and returns its exit error.
func (p *process) wait() error {
	select {
	case <-p.ended:
		return p.err
	case <-time.After(patience):
		return fmt.Errorf("%s has not ended after %v", p.cmd, patience)
	}
}

// stops fails the test unless the processes end with status 0 after SIGTERM.
func stops(t *testing.T, processes ...*process) {
	t.Helper()
	for _, p := range processes {
		client.CloseIdleConnections() // the process would wait a second for the test's idle connections
		p.cmd.Process.Signal(syscall.SIGTERM)
		if err := p.wait(); err != nil {
			t.Errorf("%s ended with %v", p.cmd, err)
		}
	}
}

// client keeps enough idle connections for all clients of a test.
var client = &http.Client{
	Timeout:   patience,
	Transport: &http.Transport{MaxIdleConnsPerHost: 512, MaxConnsPerHost: 512},
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (p *process) do(ctx context.Context, method, address, key, idempotencyKey, body string) (answer, error) {
	return request(ctx, client, method, p.base+address, key, idempotencyKey, body)
}

func request(ctx context.Context, client *http.Client, method, url, token, idempotencyKey, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", idempotencyKey)
	}
	w, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, w.Header, string(raw)}, err
}

// patiently is do for clients that repeat what gets 503: on a slow machine, a request may wait for longer than the process
// lets it.
func (p *process) patiently(ctx context.Context, method, address, key, idempotencyKey, body string) (answer, error) {
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		a, err := p.do(ctx, method, address, key, idempotencyKey, body)
		if err != nil || a.status != http.StatusServiceUnavailable || time.Now().After(end) {
			return a, err
		}
	}
}

func (p *process) get(t *testing.T, address, key string) answer {
	t.Helper()
	a, err := p.patiently(t.Context(), "GET", address, key, "", "")
	must(t, err)
	return a
}

// getOnce is get for tests in which no request may get 503: in the long form, any that does fails them.
func (p *process) getOnce(t *testing.T, address, key string) answer {
	t.Helper()
	if !storetest.Long() {
		return p.get(t, address, key)
	}
	a, err := p.do(t.Context(), "GET", address, key, "", "")
	must(t, err)
	return a
}

// serves fails the test unless the process serves a request.
func (p *process) serves(t *testing.T, key string) {
	t.Helper()
	if a := p.getOnce(t, "?path=/v1/me", key); a.status != http.StatusOK {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

// send sends a request with a body, and fails the test unless its response has the status.
func (p *process) send(t *testing.T, status int, method, address, key, idempotencyKey, body string) answer {
	t.Helper()
	a, err := p.patiently(t.Context(), method, address, key, idempotencyKey, body)
	if err != nil || a.status != status {
		t.Fatalf("%s %s: got %d %s, %v; want %d", method, address, a.status, a.body, err, status)
	}
	return a
}

// order creates a run of six jobs and returns its id.
func (p *process) order(t *testing.T, key, idempotencyKey string) string {
	t.Helper()
	return member(t, p.send(t, http.StatusAccepted, "POST", "", key, idempotencyKey, testRun).body, "id")
}

// awaitRun waits until what the process returns for a run matches.
func (p *process) awaitRun(t *testing.T, key, run, pattern string) {
	t.Helper()
	wait(t, "the run", pattern, func() string { return p.get(t, "/v1/runs/"+run, key).body })
}

// awaitLog waits until the log contains the text.
func (p *process) awaitLog(t *testing.T, text string) {
	t.Helper()
	wait(t, "the log", regexp.QuoteMeta(text), p.log.String)
}

// asAdmin sends a request to the admin listener.
func (p *process) asAdmin(t *testing.T, method, path, body string) answer {
	t.Helper()
	a, err := request(t.Context(), client, method, p.admin+path, "", "", body)
	must(t, err)
	return a
}

// metrics returns the page of metrics.
func (p *process) metrics(t *testing.T) string {
	t.Helper()
	return p.asAdmin(t, "GET", "/metrics", "").body
}

// metric returns the value of a metric, by its name and labels.
func (p *process) metric(t *testing.T, name string) float64 {
	t.Helper()
	value, _, _ := strings.Cut(after(p.metrics(t), "\n"+name+" "), "\n")
	v, err := strconv.ParseFloat(value, 64)
	must(t, err)
	return v
}

// hasMetrics waits until the page of metrics has the lines. On a busy machine, metrics of the database are missing now
// and then.
func (p *process) hasMetrics(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		wait(t, "the metrics", "(?m)^"+regexp.QuoteMeta(line)+"$", func() string { return p.metrics(t) })
	}
}

// isReady waits until /readyz returns the status and a text.
func (p *process) isReady(t *testing.T, when string, status int, text string) {
	t.Helper()
	wait(t, "/readyz "+when, fmt.Sprintf("^%d .*%s", status, regexp.QuoteMeta(text)), func() string {
		a := p.asAdmin(t, "GET", "/readyz", "")
		return fmt.Sprintf("%d %s", a.status, a.body)
	})
}

// cli runs a command and decodes what it prints as JSON.
func cli[T any](t *testing.T, databaseURL string, args ...string) (v T) {
	t.Helper()
	code, stdout, stderr := aiv(t, append(args, "-json", "-database-url", databaseURL)...)
	if err := json.Unmarshal([]byte(stdout), &v); code != 0 || err != nil {
		t.Fatalf("aiv %s: exit %d: %s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return v
}

// refuses fails the test unless a command ends with status 1 and an error of one line that contains the text.
func refuses(t *testing.T, databaseURL, want string, args ...string) {
	t.Helper()
	code, _, stderr := aiv(t, append(args, "-database-url", databaseURL)...)
	if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
		t.Errorf("aiv %s: exit %d: %s; want %s", strings.Join(args, " "), code, stderr, want)
	}
}

// verify fails the test unless aiv verify finds that every invariant of the database holds.
func verify(t *testing.T, databaseURL string) {
	t.Helper()
	if code, stdout, stderr := aiv(t, "verify", "-database-url", databaseURL); code != 0 {
		t.Errorf("aiv verify: exit %d: %s%s", code, stdout, stderr)
	}
}

// wait waits until what is read matches.
func wait(t *testing.T, what, pattern string, read func() string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		got := read()
		if re.MatchString(got) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: got %s, want %s", what, tail(got), pattern)
		}
	}
}

// member returns the first value of a string member with a name.
func member(t *testing.T, body, name string) string {
	t.Helper()
	value, _, ended := strings.Cut(after(body, `"`+name+`":"`), `"`)
	if !ended {
		t.Fatalf("there is no %s in %s", name, body)
	}
	return value
}

// after returns what follows the first mark in a text.
func after(text, mark string) string {
	_, rest, _ := strings.Cut(text, mark)
	return rest
}

// logBuffer collects the log of a process.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tail returns the end of a text.
func tail(text string) string { return text[max(0, len(text)-1000):] }

var must = storetest.Must

// host returns the process's address.
func (p *process) host() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(p.base, "http://"), "/")
	return host
}
