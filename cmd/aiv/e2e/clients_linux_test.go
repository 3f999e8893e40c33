package e2e

import (
	"errors"
	"fmt"
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

// dialerFrom returns a dialer of connections from a loopback address.
func dialerFrom(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}

// connect opens n connections from a loopback address, and sends the first bytes on each.
func (p *process) connect(t *testing.T, from string, n int, first string) (conns []net.Conn) {
	t.Helper()
	for range n {
		conn, err := dialerFrom(from).DialContext(t.Context(), "tcp", p.host())
		must(t, err)
		t.Cleanup(func() { conn.Close() })
		conns = append(conns, conn)
		_, err = io.WriteString(conn, first)
		must(t, err)
	}
	return conns
}

// drip sends a byte on each connection. It returns how many connections are still open.
func drip(conns []net.Conn) (open int) {
	for _, conn := range conns {
		conn.SetReadDeadline(time.Now().Add(50 * time.Microsecond))
		if _, err := conn.Read(make([]byte, 512)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if _, err := conn.Write([]byte("x")); err == nil {
			open++
		}
	}
	return open
}

// TestFaultSlowClients: many clients send headers or bodies byte by byte, nothing, or a request, after which they
// disconnect. Another client is served all the time, and the requests of vanished clients are counted. In the long form
// the other client is served at normal speed, and slow connections are closed. It is not parallel, because it measures
// the process.
func TestFaultSlowClients(t *testing.T) {
	slow, idle, vanishing, rounds := byForm(100, 1000), byForm(300, 10_000), byForm(10, 50), byForm(10, 80)
	url, pool, account, key := databaseOfCustomer(t)
	const rate = 900_000 // of the vanishing clients
	other := newKey(t, url, account, rate).Key
	p := startServe(t, url)
	began := time.Now()
	conns := p.connect(t, "127.0.0.1", slow/2, "GET "+gateway.Base+"?path=/v1/me HTTP/1.1\r\nHost: a\r\nX-Slow: ")
	conns = append(conns, p.connect(t, "127.0.0.1", slow/2, strings.TrimSuffix(wirePost("slow", key.Key, testRun), testRun[1:]))...)
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} { // an address may open half of all connections
		p.connect(t, from, idle/2, "")
	}

	open, slowest := 0, time.Duration(0)
	for round := range rounds {
		// The process closes them 20 s after they were opened.
		if open = drip(conns); round == 0 && open < slow && time.Since(began) < 20*time.Second {
			t.Errorf("%d of %d slow connections are open", open, slow)
		}
		for _, request := range []string{wireGet("?path=/v1/runs", other), wirePost(fmt.Sprint("vanish-", round), other, testRun)} {
			for _, conn := range p.connect(t, "127.0.0.4", vanishing/2, request) {
				conn.Close()
			}
		}
		for range 5 {
			sent := time.Now()
			p.serves(t, key.Key)
			slowest = max(slowest, time.Since(sent))
		}
		if storetest.Long() {
			<-time.After(500 * time.Millisecond)
		}
	}
	if storetest.Long() && (open > 0 || slowest > time.Second) {
		t.Errorf("%d slow connections are open at the end; another client waited for %v", open, slowest)
	}
	counted := func() int {
		return number(t, pool, `SELECT COALESCE(sum(used), 0) FROM api_rate_limit_buckets WHERE rate_limit = $1`, rate)
	}
	storetest.Eventually(t, "the requests of vanished clients are counted", func() bool { return counted() >= rounds*vanishing })
	if n := counted(); n > rounds*vanishing {
		t.Errorf("%d requests of vanished clients are counted, want %d", n, rounds*vanishing)
	}
	t.Logf("%d slow and %d silent clients: another client waited up to %v; memory %d MiB", slow, idle, slowest, p.memory(t, maxMemory))
	for _, conn := range conns {
		conn.Close()
	}
	stops(t, p)
	if _, fault, found := strings.Cut(p.log.String(), `"ERROR"`); found {
		t.Errorf("closed connections left errors in the log: %.1000s", fault)
	}
}

// TestFewDescriptors: one address opens more connections than the process may have descriptors, and sends nothing.
// Clients of other addresses are served, and the admin listener and the database are reached.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	args := append([]string{"-c", `ulimit -n 128 && exec "$0" "$@"`, binary}, onFreePorts("serve")...)
	p := start(t, storetest.URL(t), exec.Command("sh", args...))
	silent := p.connect(t, "127.0.0.1", 140, "")
	other := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: dialerFrom("127.0.0.2").DialContext}}
	for _, address := range []string{p.admin + "/livez", p.admin + "/readyz", "http://" + p.host() + gateway.Base + "/docs"} {
		storetest.Eventually(t, address+" is served", func() bool { // /readyz waits for the database for two seconds
			w, err := other.Get(address)
			must(t, err)
			w.Body.Close()
			return w.StatusCode < 500
		})
	}
	for _, conn := range silent {
		conn.Close()
	}
	stops(t, p)
}

// TestLogIsNotRead: a process whose log is not read serves, and ends after SIGTERM within -drain, even when it has an
// error to report. A worker whose log is not read works its jobs, and ends after SIGTERM.
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

	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	w.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe is not full: %v", err)
	}
	cmd := exec.Command(binary, append(workArgs(t, startDispatch(t, url), newWorker(t, url).Token), "--", "false")...)
	cmd.Stderr = w
	worker := launch(t, cmd)
	p.awaitRun(t, key.Key, p.order(t, key.Key, "unread"), `"status":"failed"`)
	stops(t, worker)

	// This request takes longer than -drain.
	p.connect(t, "127.0.0.1", 1, strings.TrimSuffix(wirePost("cut-off", key.Key, testRun), testRun))
	p.serves(t, key.Key)
	p.cmd.Process.Signal(syscall.SIGTERM)
	err = p.wait()
	if p.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("aiv serve ended with %v, want exit status 1, since a request was cut off", err)
	}
}
