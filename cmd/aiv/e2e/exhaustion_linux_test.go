package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/gateway"
)

// services are the commands that serve, with a path of their listener that needs no key or token to get a response.
var services = []struct{ command, path string }{{"serve", gateway.Base + "/docs"}, {"dispatch", "/worker/v1/claim"}}

// TestLogIsNotRead: a process whose log is not read serves, and ends after SIGTERM within -drain, even when it has an
// error to report.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1_000_000)
	p, log := startUnread(t, url, "-drain", "1s")
	const pipeSize = 4096 // a dozen lines
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, log.Fd(), syscall.F_SETPIPE_SZ, pipeSize); errno != 0 {
		t.Fatal(errno)
	}
	for range 200 {
		if a := p.get(t, "?path=/v1/me", key.Key); a.status != 200 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	conn, err := net.Dial("tcp", p.host()) // its request takes longer than -drain
	must(t, err)
	defer conn.Close()
	if _, err := io.WriteString(conn, strings.TrimSuffix(wirePost("unread", key.Key, testRun), testRun)); err != nil {
		t.Fatal(err)
	}
	p.get(t, "?path=/v1/me", key.Key)
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if p.cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("aiv serve ended with %v, want exit status 1, since a request was cut off", err)
		}
	case <-time.After(patience):
		p.cmd.Process.Kill()
		t.Errorf("aiv serve had not ended after %v: %v", patience, <-p.ended)
	}
}

// TestFewDescriptors: one address opens more connections than the process may have descriptors, and sends nothing.
// Clients of other addresses are served, and the admin listener and the database are reached.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	for _, service := range services {
		t.Run(service.command, func(t *testing.T) {
			t.Parallel()
			url, _ := database(t)
			p := start(t, url, exec.Command("sh", "-c", `ulimit -n 128 && exec "$0" "$@"`, binary,
				service.command, "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"))
			silent := &connections{p: p}
			silent.open(t, 140, "")
			other := &http.Client{Timeout: patience, Transport: &http.Transport{
				DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext,
			}}
			for _, address := range []string{p.admin + "/livez", p.admin + "/readyz", "http://" + p.host() + service.path} {
				w, err := other.Get(address)
				must(t, err)
				if w.Body.Close(); w.StatusCode >= 500 {
					t.Errorf("%s: got %d", address, w.StatusCode)
				}
			}
			silent.close()
			if err := p.stop(); err != nil {
				t.Errorf("the process ended with %v", err)
			}
			if log := p.log.String(); !strings.Contains(log, "too many connections of one address") {
				t.Errorf("the log does not mention the connections:\n%s", p.log.end())
			}
		})
	}
}

// TestWorkLogIsNotRead: a worker whose log is not read works its jobs, and ends after SIGTERM.
func TestWorkLogIsNotRead(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	token := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(token, []byte(newWorker(t, url).Token), 0o600))
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	cmd := exec.Command(binary, "work", "-url", strings.TrimSuffix(dispatch.base, "/worker/v1"), "-token-file", token, "--", "false")
	cmd.Stderr = w
	must(t, startCommand(cmd))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() })
	run := order(t, serve, key.Key, "unread")
	wait(t, "the run", `"status":"failed"`, func() string { return serve.get(t, "/v1/runs/"+run, key.Key).body })
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("aiv work ended with %v", err)
		}
	case <-time.After(patience):
		t.Errorf("aiv work had not ended after %v", patience)
	}
}
