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
	"aiv/store/storetest"
)

// TestLogIsNotRead: a process whose log is not read serves, and ends after SIGTERM within -drain, even when it has an
// error to report.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	p, log := startUnread(t, url, "-drain", "1s")
	const pipeSize = 4096 // a dozen lines
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, log.Fd(), syscall.F_SETPIPE_SZ, pipeSize); errno != 0 {
		t.Fatal(errno)
	}
	for range 200 {
		p.serves(t, key.Key)
	}
	conn, err := net.Dial("tcp", p.host()) // its request takes longer than -drain
	must(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, strings.TrimSuffix(wirePost("unread", key.Key, testRun), testRun))
	must(t, err)
	p.serves(t, key.Key)
	p.cmd.Process.Signal(syscall.SIGTERM)
	err = p.wait()
	if p.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("aiv serve ended with %v, want exit status 1, since a request was cut off", err)
	}
}

// TestFewDescriptors: one address opens more connections than the process may have descriptors, and sends nothing.
// Clients of other addresses are served, and the admin listener and the database are reached.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	url, _ := database(t)
	args := append([]string{"-c", `ulimit -n 128 && exec "$0" "$@"`, binary}, onFreePorts("serve")...)
	p := start(t, url, exec.Command("sh", args...))
	silent := &connections{p: p}
	silent.open(t, "127.0.0.1", 140, "")
	other := &http.Client{Timeout: patience, Transport: &http.Transport{
		DialContext: dialerFrom("127.0.0.2").DialContext,
	}}
	for _, address := range []string{p.admin + "/livez", p.admin + "/readyz", "http://" + p.host() + gateway.Base + "/docs"} {
		storetest.Eventually(t, address+" is served", func() bool { // /readyz waits for the database for two seconds
			w, err := other.Get(address)
			must(t, err)
			w.Body.Close()
			return w.StatusCode < 500
		})
	}
	silent.close()
	stops(t, p)
	if !strings.Contains(p.log.String(), "too many connections of one address") {
		t.Error("the log does not mention the connections")
	}
}

// TestWorkLogIsNotRead: a worker whose log is not read works its jobs, and ends after SIGTERM.
func TestWorkLogIsNotRead(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	cmd := exec.Command(binary, append(workArgs(t, dispatch, t.TempDir(), newWorker(t, url).Token), "--", "false")...)
	cmd.Stderr = w
	worker := launch(t, cmd)
	serve.awaitRun(t, key.Key, serve.order(t, key.Key, "unread"), `"status":"failed"`)
	stops(t, worker)
}
