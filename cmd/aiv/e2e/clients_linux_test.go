package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/gateway"
	"aiv/store/storetest"
)

// connections are connections to one process.
type connections struct {
	p     *process
	conns []net.Conn
}

// dialerFrom returns a dialer of connections from a loopback address.
func dialerFrom(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
}

// open opens n connections from a loopback address, and sends the first bytes on each.
func (c *connections) open(t *testing.T, from string, n int, first string) {
	t.Helper()
	dialer := dialerFrom(from)
	for range n {
		conn, err := dialer.DialContext(t.Context(), "tcp", c.p.host())
		must(t, err)
		c.conns = append(c.conns, conn)
		_, err = io.WriteString(conn, first)
		must(t, err)
	}
}

func (c *connections) close() {
	for _, conn := range c.conns {
		conn.Close()
	}
}

// drip sends a byte on each connection. It returns how many connections are still open.
func (c *connections) drip() (open int) {
	for _, conn := range c.conns {
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

// TestFaultSlowClients: many clients send headers or bodies byte by byte, or nothing. Another client is served all the
// time. In the long form it is served at normal speed, and slow connections are closed. It is not parallel, because it
// measures the process.
func TestFaultSlowClients(t *testing.T) {
	slow, idle, rounds := byForm(100, 1000), byForm(300, 10_000), byForm(10, 80)
	url, _, _, key := databaseOfCustomer(t)
	p := startServe(t, url)
	post := wirePost("slow", key.Key, testRun)
	c := &connections{p: p}
	defer c.close()
	began := time.Now()
	c.open(t, "127.0.0.1", slow/2, "GET "+gateway.Base+"?path=/v1/me HTTP/1.1\r\nHost: a\r\nX-Slow: ")
	c.open(t, "127.0.0.1", slow-slow/2, post[:strings.Index(post, "\r\n\r\n")+4]+"{")
	silent := &connections{p: p}
	defer silent.close()
	for _, from := range []string{"127.0.0.2", "127.0.0.3"} { // an address may open half of all connections
		silent.open(t, from, idle/2, "")
	}

	open, slowest := 0, time.Duration(0)
	for round := range rounds {
		// The process closes them 20 s after they were opened.
		if open = c.drip(); round == 0 && open < slow && time.Since(began) < 20*time.Second {
			t.Errorf("%d of %d slow connections are open", open, slow)
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
	t.Logf("%d slow and %d silent clients, %d slow connections open at the end: another client waited up to %v; memory %d MiB",
		slow, idle, open, slowest, p.memory(t, maxMemory))
}

// TestFaultVanishingClients: clients close or half-close their connection before the response. Each request is counted,
// half-closed clients get the response, and no closed connection is logged as an error.
func TestFaultVanishingClients(t *testing.T) {
	t.Parallel()
	clients := byForm(100, 5000)
	url, pool, _, key := databaseOfCustomer(t)
	p := startServe(t, url)
	p.getOnce(t, "?path=/v1/me", key.Key)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for i := range clients / 50 {
				conn, err := net.Dial("tcp", p.host())
				if err != nil {
					t.Error(err)
					return
				}
				request := wireGet("?path=/v1/runs", key.Key)
				if i%4 == 0 {
					request = wirePost(fmt.Sprintf("vanish-%d", i), key.Key, testRun)
				}
				if _, err := io.WriteString(conn, request); err != nil {
					t.Error(err)
				}
				if i%2 == 0 { // half-closed
					conn.(*net.TCPConn).CloseWrite()
					conn.SetDeadline(time.Now().Add(patience))
					got, err := io.ReadAll(conn)
					served := strings.HasPrefix(string(got), "HTTP/1.1 20") || tooSlow(503) && strings.HasPrefix(string(got), "HTTP/1.1 503")
					if err != nil || !served {
						t.Errorf("a half-closed client got %.100q, %v", got, err)
					}
				}
				conn.Close()
			}
		})
	}
	wg.Wait()
	counted := func() int { return number(t, pool, `SELECT sum(used) FROM api_rate_limit_buckets`) }
	want := 1 + clients
	storetest.Eventually(t, fmt.Sprintf("%d requests are counted", want), func() bool { return counted() >= want })
	if n := counted(); n > want {
		t.Errorf("%d requests are counted, want %d", n, want)
	}
	stops(t, p)
	if _, fault, found := strings.Cut(p.log.String(), `"ERROR"`); found {
		t.Errorf("closed connections left errors in the log: %.1000s", fault)
	}
}
