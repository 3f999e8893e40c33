package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestFaultRollingRestart: two processes share a port by sockets that are passed as systemd does. They are replaced one
// after the other under load, by SIGTERM. No request fails on a new connection, and each that was read on a kept one is
// answered, the last one with Connection: close. Each process ends within its drain time, also with silent connections:
// otherwise it would end with an error.
func TestFaultRollingRestart(t *testing.T) {
	t.Parallel()
	rounds := byForm(1, 20)
	url, _, _, key := databaseOfCustomer(t)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer socket.Close()
	passed, err := socket.(*net.TCPListener).File()
	must(t, err)
	defer passed.Close()
	socket.Close() // the file stays open; this process accepts no connection
	processes := []*process{startServeOn(t, url, passed), startServeOn(t, url, passed)}

	host := processes[0].host() // where the connections are accepted
	var over atomic.Bool
	var answered, lasting atomic.Int64
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() { // one request per connection, no retries
			for !over.Load() {
				if err := exchange(t, host, "", key.Key, &answered, func() bool { return true }); err != nil {
					t.Errorf("a request on a new connection: %v", err)
				}
			}
		})
		clients.Go(func() { // keeps its connection until the server closes it
			for i := 0; !over.Load(); i++ {
				if err := exchange(t, host, fmt.Sprintf("roll-%d-%d", c, i), key.Key, &lasting, over.Load); err != nil {
					t.Errorf("a request on a kept connection: %v", err)
				}
			}
		})
	}
	var served int64
	for n := range 2 * rounds {
		before := answered.Load()
		storetest.Eventually(t, "100 further responses", func() bool { return answered.Load() >= before+100 })
		next := startServeOn(t, url, passed)
		stops(t, processes[n%2])
		served += processes[n%2].served()
		processes[n%2] = next
	}
	over.Store(true)
	clients.Wait()
	for _, host := range []string{host, strings.TrimPrefix(processes[0].admin, "http://")} { // connected, and silent
		conn, err := net.Dial("tcp", host)
		must(t, err)
		defer conn.Close()
	}
	stops(t, processes...)
	served += processes[0].served() + processes[1].served()
	if got := answered.Load() + lasting.Load(); served > got {
		t.Errorf("the processes have served %d requests, and the clients got %d responses", served, got)
	}
	t.Logf("%d restarts: %d requests on new connections, %d on lasting ones", 2*rounds, answered.Load(), lasting.Load())
}

// startServeOn starts `aiv serve` with a listening socket passed to it.
func startServeOn(t *testing.T, databaseURL string, socket *os.File) *process {
	t.Helper()
	// The shell is replaced by the program, so that LISTEN_PID is the program's process id.
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, binary, "serve", "-admin-addr", "127.0.0.1:0")
	cmd.ExtraFiles = []*os.File{socket}
	return start(t, databaseURL, cmd)
}

// served returns how many requests the process, which has ended, has logged: all that it has read, or fewer if this
// process did not read the log fast enough.
func (p *process) served() int64 {
	return int64(strings.Count(p.log.String(), `"msg":"request"`))
}

// exchange sends requests over one connection until the server closes it, or over is true after one. It counts the
// responses and returns the error of the last request. With keys, some requests create runs.
//
// It is no error if the server closes an idle connection while a request is on its way, as it does when it ends and the
// client was slow to send it; such a request is not read. So does it if it has got no first request for 20 s: this
// process may have been stopped for that long.
func exchange(t *testing.T, host, keys, key string, answered *atomic.Int64, over func() bool) error {
	began := time.Now()
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	late := time.Since(began) > 10*time.Second
	r := bufio.NewReader(conn)
	for n := 0; n == 0 || !over(); n++ {
		request := wireGet("?path=/v1/me", key)
		if keys != "" && n%4 == 0 {
			request = wirePost(fmt.Sprintf("%s-%d", keys, n), key, testRun)
		}
		w, _, err := exchangeOne(conn, r, request)
		if (n > 0 || late) && errors.Is(err, errCutOff) && !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("request %d: %w", n, err)
		}
		if w.StatusCode != 200 && w.StatusCode != 202 && !tooSlow(w.StatusCode) {
			t.Errorf("got %d", w.StatusCode)
		}
		if answered.Add(1); w.Close {
			return nil
		}
	}
	return nil
}

// exchangeOne sends a request over a connection, and returns the response and its body. If no response begins, the
// error is errCutOff.
func exchangeOne(conn net.Conn, r *bufio.Reader, request string) (w *http.Response, body string, err error) {
	conn.SetDeadline(time.Now().Add(patience))
	if _, err = io.WriteString(conn, request); err == nil {
		_, err = r.Peek(1)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errCutOff, err)
	}
	if w, err = http.ReadResponse(r, nil); err != nil {
		return nil, "", err
	}
	raw, err := io.ReadAll(w.Body)
	return w, string(raw), err
}
