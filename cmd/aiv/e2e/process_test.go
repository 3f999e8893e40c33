package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aiv/gateway"
)

// A process is a service, `aiv serve` or `aiv dispatch`, as an operator starts it.
type process struct {
	cmd         *exec.Cmd
	base, admin string // URLs
	log         *logBuffer
	ended       chan error
}

// startServe starts `aiv serve` on the database and waits until it serves.
func startServe(t *testing.T, databaseURL string, args ...string) *process {
	t.Helper()
	return start(t, databaseURL, exec.Command(binary, append([]string{"serve", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"}, args...)...))
}

// startDispatch starts `aiv dispatch` on the database and waits until it serves.
func startDispatch(t *testing.T, databaseURL string, args ...string) *process {
	t.Helper()
	return start(t, databaseURL, exec.Command(binary, append([]string{"dispatch", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"}, args...)...))
}

func start(t *testing.T, databaseURL string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, log: &logBuffer{}, ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), "DATABASE_URL="+databaseURL)
	stderr, err := p.cmd.StderrPipe()
	must(t, err)
	must(t, startCommand(p.cmd))
	serving := make(chan struct{})
	go func() {
		log := io.TeeReader(stderr, p.log)
		if p.readServing(log) {
			close(serving)
		}
		io.Copy(io.Discard, log)
		p.ended <- p.cmd.Wait()
	}()
	t.Cleanup(func() { p.kill() })
	select {
	case <-serving:
	case err := <-p.ended:
		p.ended <- err // for kill
		t.Fatalf("%s ended: %v\n%s", cmd, err, p.log.end())
	case <-time.After(patience):
		t.Fatalf("%s does not serve\n%s", cmd, p.log.end())
	}
	return p
}

// startUnread starts `aiv serve` on the database, with a pipe as its log, and reads the log until it serves.
func startUnread(t *testing.T, databaseURL string, args ...string) (p *process, log *os.File) {
	t.Helper()
	log, stderr, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { log.Close() })
	args = append([]string{"serve", "-database-url", databaseURL, "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"}, args...)
	p = &process{cmd: exec.Command(binary, args...), ended: make(chan error, 1)}
	p.cmd.Stderr = stderr
	must(t, startCommand(p.cmd))
	stderr.Close()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	go func() { p.ended <- p.cmd.Wait() }()
	if !p.readServing(log) {
		t.Fatalf("aiv serve ended: %v", <-p.ended)
	}
	return p, log
}

// readServing reads the log until the process serves, and sets its addresses.
func (p *process) readServing(log io.Reader) bool {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l struct{ Msg, Address, Path, Admin string }
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Msg == "serving" {
			p.base, p.admin = "http://"+l.Address+l.Path, "http://"+l.Admin
			return true
		}
	}
	return false
}

// kill ends the process by SIGKILL.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.wait()
}

// stop ends the process by SIGTERM and returns its exit error.
func (p *process) stop() error {
	client.CloseIdleConnections() // those of this process would keep it for a second
	p.cmd.Process.Signal(syscall.SIGTERM)
	return p.wait()
}

func (p *process) wait() error {
	err := <-p.ended
	p.ended <- err // for the next call
	return err
}

// awaitEnd waits until a process has ended, and returns its exit error.
func awaitEnd(t *testing.T, what string, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatalf("%s has not ended after %v", what, patience)
		return nil
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

// errCutOff is the error of a request that was sent and got no response. The client may have retried it without
// success.
var errCutOff = errors.New("no response")

func (p *process) do(ctx context.Context, method, address, key, idempotencyKey, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.base+address, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", idempotencyKey)
	}
	var written atomic.Bool
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { written.Store(true) }}))
	w, err := client.Do(r)
	if err != nil && written.Load() {
		return answer{}, fmt.Errorf("%w: %w", errCutOff, err)
	}
	if err != nil {
		return answer{}, err
	}
	defer w.Body.Close()
	raw, err := io.ReadAll(w.Body)
	return answer{w.StatusCode, w.Header, string(raw)}, err
}

func (p *process) get(t *testing.T, address, key string) answer {
	t.Helper()
	a, err := p.do(t.Context(), "GET", address, key, "", "")
	must(t, err)
	return a
}

// cli runs a command and decodes what it prints as JSON.
func cli[T any](t *testing.T, databaseURL string, args ...string) (v T) {
	t.Helper()
	code, stdout, stderr := aiv(t.Context(), append(args, "-json", "-database-url", databaseURL)...)
	if code != 0 {
		t.Fatalf("aiv %s: exit %d: %s", strings.Join(args, " "), code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		t.Fatalf("aiv %s printed %q: %v", strings.Join(args, " "), stdout, err)
	}
	return v
}

// verify fails the test unless `aiv verify` finds the database consistent.
func verify(t *testing.T, databaseURL string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if code, stdout, stderr := aiv(ctx, "verify", "-database-url", databaseURL); code != 0 {
		t.Errorf("aiv verify: exit %d: %s%s", code, stderr, stdout)
	}
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

// end returns the end of the log.
func (l *logBuffer) end() string {
	text := l.String()
	return text[max(0, len(text)-1000):]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host returns the process's address.
func (p *process) host() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(p.base, "http://"), "/")
	return host
}

// wireGet and wirePost return requests as bytes of HTTP/1.1.
func wireGet(query, key string) string {
	return "GET " + gateway.Base + query + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + key + "\r\n\r\n"
}

func wirePost(idempotencyKey, key, body string) string {
	return "POST " + gateway.Base + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + key + "\r\nContent-Type: application/json\r\nIdempotency-Key: " +
		idempotencyKey + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}
