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

// TestFaultTermination: SIGTERM under load. Each request that the process has read gets its response, and the process
// ends within its drain time: otherwise it would end with an error. Idle connections are closed; the others get
// Connection: close with their last response.
func TestFaultTermination(t *testing.T) {
	t.Parallel()
	times := byForm(1, 20)
	url, _, _, key := databaseOfCustomer(t, 1_000_000)
	for n := range times {
		p := startServe(t, url)
		var answered atomic.Int64
		var clients sync.WaitGroup
		for c := range 32 {
			clients.Go(func() {
				for i := 0; ; i++ {
					n, err := p.exchange(t, fmt.Sprintf("term-%d-%d-%d", n, c, i), key.Key, &answered, func() bool { return false })
					if err != nil && n > 0 {
						t.Errorf("request %d of a connection failed: %v", n, err)
					}
					if n == 0 {
						return // the connection was refused, or not accepted before the process ended
					}
				}
			})
		}
		storetest.Eventually(t, "100 responses", func() bool { return answered.Load() >= 100 })
		for _, host := range []string{p.host(), strings.TrimPrefix(p.admin, "http://")} { // connected, and silent
			conn, err := net.Dial("tcp", host)
			must(t, err)
			defer conn.Close()
		}
		if err := p.stop(); err != nil {
			t.Errorf("the process ended with %v\n%s", err, p.log.end())
		}
		clients.Wait()
		if served := p.served(); served > answered.Load() {
			t.Errorf("the process has served %d requests, and the clients got %d responses", served, answered.Load())
		}
	}
}

// served returns how many requests the process, which has ended, has logged: all that it has read, or fewer if this
// process did not read the log fast enough.
func (p *process) served() int64 {
	return int64(strings.Count(p.log.String(), `"msg":"request"`))
}

// exchange sends requests over one connection until the server closes it or over is true. It returns the number of
// responses and the error of the last request. It is no error if the server closes an idle connection while a request is
// on its way, as it does when it ends and the client was slow to send it; such a request is not read.
func (p *process) exchange(t *testing.T, keys, key string, answered *atomic.Int64, over func() bool) (n int, err error) {
	conn, err := net.Dial("tcp", p.host())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for ; !over(); n++ {
		conn.SetDeadline(time.Now().Add(patience))
		request := wireGet("?path=/v1/me", key)
		if n%4 == 0 {
			request = wirePost(fmt.Sprintf("%s-%d", keys, n), key, testRun)
		}
		if _, err = io.WriteString(conn, request); err == nil {
			_, err = r.Peek(1)
		}
		if err != nil && n > 0 && !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		w, err := http.ReadResponse(r, nil)
		if err != nil {
			return n, err
		}
		if _, err := io.Copy(io.Discard, w.Body); err != nil {
			return n, err
		}
		if w.StatusCode != 200 && w.StatusCode != 202 {
			t.Errorf("got %d", w.StatusCode)
		}
		answered.Add(1)
		if w.Close {
			return n + 1, nil
		}
	}
	return n, nil
}

// TestFaultRollingRestart: two processes share a port by sockets that are passed as systemd does. They are replaced one
// after the other under load. No request fails on a new connection, and each that was read on a kept one is answered.
func TestFaultRollingRestart(t *testing.T) {
	t.Parallel()
	rounds := byForm(1, 20)
	url, _, _, key := databaseOfCustomer(t, 1_000_000)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer socket.Close()
	passed, err := socket.(*net.TCPListener).File()
	must(t, err)
	defer passed.Close()
	socket.Close() // the file stays open; this process accepts no connection
	processes := []*process{startServeOn(t, url, passed), startServeOn(t, url, passed)}

	front := &process{base: processes[0].base} // the process that accepts the connection
	stop := make(chan struct{})
	var answered, lasting atomic.Int64
	var slowest atomic.Int64
	var clients sync.WaitGroup
	over := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	for range 8 {
		clients.Go(func() { // one request per connection, no retries
			for !over() {
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
			for i := 0; !over(); i++ {
				n, err := front.exchange(t, fmt.Sprintf("roll-%d-%d", c, i), key.Key, &lasting, over)
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
		if err := processes[n%2].stop(); err != nil {
			t.Errorf("the process ended with %v\n%s", err, processes[n%2].log.end())
		}
		served += processes[n%2].served()
		processes[n%2] = next
	}
	close(stop)
	clients.Wait()
	for _, p := range processes {
		if err := p.stop(); err != nil {
			t.Errorf("the process ended with %v\n%s", err, p.log.end())
		}
		served += p.served()
	}
	if got := answered.Load() + lasting.Load(); served > got {
		t.Errorf("the processes have served %d requests, and the clients got %d responses", served, got)
	}
	t.Logf("%d restarts: %d requests on new connections, %d on lasting ones, the slowest took %v", 2*rounds, answered.Load(), lasting.Load(), time.Duration(slowest.Load()))
}

// once sends a request on a new connection.
func once(host, request string) error {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	w, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	if w.StatusCode != 200 {
		return fmt.Errorf("got %d", w.StatusCode)
	}
	return nil
}

// startServeOn starts `aiv serve` with a listening socket passed to it.
func startServeOn(t *testing.T, databaseURL string, socket *os.File) *process {
	t.Helper()
	// The shell is replaced by the program, so that LISTEN_PID is the program's process id.
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, binary, "serve", "-admin-addr", "127.0.0.1:0")
	cmd.ExtraFiles = []*os.File{socket}
	return start(t, databaseURL, cmd)
}
