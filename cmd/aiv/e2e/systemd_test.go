package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"aiv/store/storetest"
)

// TestFaultRollingRestart: two processes share a port by sockets that are passed as systemd does. They are replaced one
// after the other under load, by SIGTERM. No request fails on a new connection, or on a kept one of an HTTP client, which
// sends what was not read again, and each that was read is answered. Each process ends within its drain time, also with
// silent connections: otherwise it would end with an error.
func TestFaultRollingRestart(t *testing.T) {
	t.Parallel()
	rounds := byForm(1, 20)
	url, _, _, key := databaseOfCustomer(t)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	passed, err := socket.(*net.TCPListener).File()
	must(t, err)
	defer passed.Close()
	socket.Close() // the file stays open; this process accepts no connection
	startServe := func() *process {
		// The shell is replaced by the program, so that LISTEN_PID is the program's process id.
		cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"`, binary, "serve", "-admin-addr", "127.0.0.1:0")
		cmd.ExtraFiles = []*os.File{passed}
		return start(t, url, cmd)
	}
	processes := []*process{startServe(), startServe()}
	host, base := processes[0].host(), processes[0].base // where the connections are accepted

	var over atomic.Bool
	var answered atomic.Int64
	var clients sync.WaitGroup
	for c := range 16 {
		own := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: c%2 == 0}}
		defer own.CloseIdleConnections()
		clients.Go(func() {
			for n := 0; !over.Load(); n++ {
				method, query, body := "GET", "?path=/v1/me", ""
				if n%4 == 0 {
					method, query, body = "POST", "", testRun
				}
				a, err := request(t.Context(), own, method, base+query, key.Key, fmt.Sprintf("roll-%d-%d", c, n), body)
				tooSlow := a.status == 503 && !storetest.Long() // on a slow machine, on which only the short forms run
				if answered.Add(1); err != nil || a.status != 200 && a.status != 202 && !tooSlow {
					t.Errorf("client %d: %d %s, %v", c, a.status, a.body, err)
				}
			}
		})
	}
	served := 0
	// ends stops a process and counts the requests that it has logged: all that it has read, or fewer if this process did
	// not read the log fast enough.
	ends := func(p *process) {
		stops(t, p)
		served += strings.Count(p.log.String(), `"msg":"request"`)
	}
	for n := range 2 * rounds {
		before := answered.Load()
		storetest.Eventually(t, "100 further responses", func() bool { return answered.Load() >= before+100 })
		next := startServe()
		ends(processes[n%2])
		processes[n%2] = next
	}
	over.Store(true)
	clients.Wait()
	for _, host := range []string{host, strings.TrimPrefix(processes[0].admin, "http://")} { // connected, and silent
		conn, err := net.Dial("tcp", host)
		must(t, err)
		defer conn.Close()
	}
	ends(processes[0])
	ends(processes[1])
	if got := answered.Load(); int64(served) > got {
		t.Errorf("the processes have served %d requests, and the clients got %d responses", served, got)
	}
}

// TestSystemdIsNotified starts `aiv serve` as systemd does a unit of Type=notify with a watchdog, and reads its
// notifications. With a certificate it serves TLS only.
func TestSystemdIsNotified(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: dir + "/notify", Net: "unixgram"})
	must(t, err)
	defer conn.Close()
	var said logBuffer
	go func() { // all the time: the process waits while the queue of the socket is full
		for b := make([]byte, 1024); ; {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			said.Write(append(b[:n:n], '\n'))
		}
	}()
	other := httptest.NewTLSServer(nil) // whose certificate aiv serves
	t.Cleanup(other.Close)
	pair := other.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	pems := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	must(t, os.WriteFile(dir+"/pem", pems, 0o600))
	cmd := exec.Command(binary, onFreePorts("serve", "-tls-cert", dir+"/pem", "-tls-key", dir+"/pem")...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+dir+"/notify", "WATCHDOG_USEC=200000")
	p := start(t, storetest.URL(t), cmd)
	for scheme, want := range map[string]int{"https": http.StatusOK, "http": http.StatusBadRequest} {
		w, err := other.Client().Get(scheme + strings.TrimPrefix(p.base, "http") + "/openapi.json")
		must(t, err)
		if w.Body.Close(); w.StatusCode != want {
			t.Errorf("%s: got %d, want %d", scheme, w.StatusCode, want)
		}
	}
	other.Client().CloseIdleConnections()
	const ready = `^READY=1\nSTATUS=Serving 127\.0\.0\.1:.*\n`
	wait(t, "the notifications", ready+`WATCHDOG=1\n`, said.String)
	stops(t, p)
	wait(t, "the notifications", ready+`(WATCHDOG=1\n)+STOPPING=1\n`, said.String)
}
