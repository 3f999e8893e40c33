package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHangup: SIGHUP is logged and does not end the process.
func TestHangup(t *testing.T) {
	t.Parallel()
	url, _ := database(t)
	_, key := customer(t, url, 1000)
	p := startServe(t, url)
	p.cmd.Process.Signal(syscall.SIGHUP)
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(p.log.String(), "SIGHUP ignored"); {
		if time.Now().After(deadline) {
			t.Fatalf("SIGHUP was not logged\n%s", p.log)
		}
		<-time.After(5 * time.Millisecond)
	}
	if a := p.get(t, "?path=/v1/me", key.Key); a.status != 200 {
		t.Errorf("after SIGHUP: got %d %s", a.status, a.body)
	}
	if err := p.stop(); err != nil {
		t.Errorf("aiv serve ended with %v", err)
	}
}

// TestLogReaderGone: the process serves after the reader of its log has ended, and ends with status 0.
func TestLogReaderGone(t *testing.T) {
	t.Parallel()
	url, _ := database(t)
	_, key := customer(t, url, 1000)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(binary, "serve", "-database-url", url, "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0")
	cmd.Stderr = w
	if err := startCommand(cmd); err != nil {
		t.Fatal(err)
	}
	w.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p := &process{cmd: cmd}
	if p.readServing(r); p.base == "" {
		t.Fatalf("aiv serve ended: %v", <-ended)
	}
	r.Close()
	for range 100 {
		if a := p.get(t, "?path=/v1/me", key.Key); a.status != 200 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("aiv serve ended with %v", err)
	}
}
