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

// served returns how many requests the process, which has ended, has logged: all that it has read, or fewer if this
// process did not read the log fast enough.
func (p *process) served() int64 {
	return int64(strings.Count(p.log.String(), `"msg":"request"`))
}

// exchange sends requests over one connection until the server closes it or over is true. It returns the number of
// responses and the error of the last request. It is no error if the server closes an idle connection while a request is
// on its way, as it does when it ends and the client was slow to send it; such a request is not read. So does it if the
// client was very slow to send the first one.
func (p *process) exchange(t *testing.T, keys, key string, answered *atomic.Int64, over func() bool) (n int, err error) {
	conn, late, err := dialProcess(p.host())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for ; !over(); n++ {
		request := wireGet("?path=/v1/me", key)
		if n%4 == 0 {
			request = wirePost(fmt.Sprintf("%s-%d", keys, n), key, testRun)
		}
		w, _, err := exchangeOne(conn, r, request)
		if (n > 0 || late) && errors.Is(err, errCutOff) && !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if w.StatusCode != 200 && w.StatusCode != 202 && !tooSlow(w.StatusCode) {
			t.Errorf("got %d", w.StatusCode)
		}
		answered.Add(1)
		if w.Close {
			return n + 1, nil
		}
	}
	return n, nil
}

// dialProcess connects to a process, and reports whether that took so long that the process may close the connection because it
// has got no request for 20 s: this process may have been stopped for that long.
func dialProcess(host string) (conn net.Conn, late bool, err error) {
	began := time.Now()
	conn, err = net.Dial("tcp", host)
	return conn, time.Since(began) > 10*time.Second, err
}

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

	front := &process{base: processes[0].base} // the process that accepts the connection
	var over atomic.Bool
	var answered, lasting, slowest atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() { // one request per connection, no retries
			for !over.Load() {
				sent := time.Now()
				if err := once(front.host(), wireGet("?path=/v1/me", key.Key)); err != nil {
					t.Errorf("a request on a new connection: %v", err)
				}
				slowest.Store(max(slowest.Load(), int64(time.Since(sent))))
				answered.Add(1)
			}
		})
	}
	for c := range 8 {
		clients.Go(func() { // keeps its connection until the server closes it
			for i := 0; !over.Load(); i++ {
				n, err := front.exchange(t, fmt.Sprintf("roll-%d-%d", c, i), key.Key, &lasting, over.Load)
				if err != nil {
					t.Errorf("request %d of a connection failed: %v", n, err)
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
	for _, host := range []string{front.host(), strings.TrimPrefix(processes[0].admin, "http://")} { // connected, and silent
		conn, err := net.Dial("tcp", host)
		must(t, err)
		defer conn.Close()
	}
	stops(t, processes...)
	served += processes[0].served() + processes[1].served()
	if got := answered.Load() + lasting.Load(); served > got {
		t.Errorf("the processes have served %d requests, and the clients got %d responses", served, got)
	}
	t.Logf("%d restarts: %d requests on new connections, %d on lasting ones, the slowest took %v", 2*rounds, answered.Load(), lasting.Load(), time.Duration(slowest.Load()))
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

// once sends a request on a new connection.
func once(host, request string) error {
	conn, late, err := dialProcess(host)
	if err != nil {
		return err
	}
	defer conn.Close()
	w, _, err := exchangeOne(conn, bufio.NewReader(conn), request)
	if late && errors.Is(err, errCutOff) {
		return nil
	}
	if err == nil && w.StatusCode != 200 && !tooSlow(w.StatusCode) {
		err = fmt.Errorf("got %d", w.StatusCode)
	}
	return err
}

// startServeOn starts `aiv serve` with a listening socket passed to it.
func startServeOn(t *testing.T, databaseURL string, socket *os.File) *process {
	t.Helper()
	// The shell is replaced by the program, so that LISTEN_PID is the program's process id.
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, binary, "serve", "-admin-addr", "127.0.0.1:0")
	cmd.ExtraFiles = []*os.File{socket}
	return start(t, databaseURL, cmd)
}
