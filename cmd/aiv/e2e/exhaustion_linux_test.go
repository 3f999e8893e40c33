package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/gateway"
)

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
	err = awaitEnd(t, "aiv serve", p.ended)
	if p.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("aiv serve ended with %v, want exit status 1, since a request was cut off", err)
	}
}

// TestFewDescriptors: one address opens more connections than the process may have descriptors, and sends nothing.
// Clients of other addresses are served, and the admin listener and the database are reached.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	url, _ := database(t)
	p := start(t, url, exec.Command("sh", "-c", `ulimit -n 128 && exec "$0" "$@"`, binary,
		"serve", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0"))
	silent := &connections{p: p}
	silent.open(t, 140, "")
	other := &http.Client{Timeout: patience, Transport: &http.Transport{
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext,
	}}
	for _, address := range []string{p.admin + "/livez", p.admin + "/readyz", "http://" + p.host() + gateway.Base + "/docs"} {
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
}

// TestWorkLogIsNotRead: a worker whose log is not read works its jobs, and ends after SIGTERM.
func TestWorkLogIsNotRead(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	dir := t.TempDir()
	cmd := exec.Command(binary, append(workArgs(t, dispatch, dir, newWorker(t, url).Token), "--", "false")...)
	cmd.Stderr = w
	worker := startWorkProcess(t, cmd, dir)
	run := order(t, serve, key.Key, "unread")
	wait(t, "the run", `"status":"failed"`, func() string { return serve.get(t, "/v1/runs/"+run, key.Key).body })
	cmd.Process.Signal(syscall.SIGTERM)
	if err := awaitEnd(t, "aiv work", worker.ended); err != nil {
		t.Errorf("aiv work ended with %v", err)
	}
}
