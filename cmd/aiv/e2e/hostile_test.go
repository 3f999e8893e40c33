package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/gateway"
)

// closed stands for a connection that is closed without a response.
const closed = 0

// TestFaultHostileMessages sends malformed and misleading messages. net/http rejects many, and its tests have all their
// variants. Each gets the listed responses; then the connection is closed or stays open. Other clients are not affected.
func TestFaultHostileMessages(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	p := startServe(t, url)
	head := "Host: a\r\nAuthorization: Bearer " + key.Key + "\r\n"
	post := "POST " + gateway.Base + " HTTP/1.1\r\n" + head + "Content-Type: application/json\r\nIdempotency-Key: k\r\n"
	get := "GET " + gateway.Base + "?path=/v1/me HTTP/1.1\r\n"
	me := get + head + "\r\n"
	one := `{"path":"/v1/me","method":"DELETE","body":{}}` // 405, without effect
	length := fmt.Sprintf("Content-Length: %d\r\n", len(one))
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(one), one)
	chunked := post + "Transfer-Encoding: chunked\r\n\r\n"
	for name, test := range map[string]struct {
		message string
		want    []int // statuses, or closed
	}{
		"a write and a read in one write": {post + length + "\r\n" + one + me, []int{405, 200}},
		// Conflicting lengths [RFC 9112, 6.3]. One response means that the rest was not read as a second request.
		"two lengths":                  {post + length + "Content-Length: 3\r\n\r\n" + one + me, []int{400, closed}},
		"a length beside chunked":      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + me, []int{405, closed}},
		"a body with a read":           {strings.Replace(me, "\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello", 1) + me, []int{200, 200}},
		"a line feed in a value":       {get + "Host: a\r\nAuthorization: Bearer " + key.Key + "\nX-Injected: yes\r\n\r\n", []int{200}},
		"a line feed in an address":    {strings.Replace(me, "/me", "/me%0d%0aX-Injected:%20yes", 1), []int{404}},
		"an address with .. segments":  {strings.Replace(me, "?path=/v1/me", "/../../etc/passwd", 1), []int{404}},
		"HTTP/2's preface":             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{404, closed}},
		"TLS":                          {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400, closed}},
		"a header of 1 MiB":            {get + head + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", []int{431, closed}},
		"1 GiB announced":              {post + "Content-Length: 1073741824\r\n\r\n{", []int{413, closed}},
		"1 GiB, asked whether to come": {post + "Content-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n", []int{413, closed}},
		"chunks without end":           {chunked + strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 512), []int{413, closed}},
		"a chunk longer than its size": {chunked + "1\r\n{}\r\n0\r\n\r\n", []int{400, closed}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.raw(t, test.message, len(test.want)); !slices.Equal(got, test.want) {
				t.Errorf("%.80q: got %v, want %v", test.message, got, test.want)
			}
		})
	}
	p.serves(t, key.Key)
}

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

// raw sends a message and returns the statuses of up to n responses, and closed if the connection was closed before.
func (p *process) raw(t *testing.T, message string, n int) (statuses []int) {
	t.Helper()
	conn := p.connect(t, "127.0.0.1", 1, "")[0]
	conn.SetDeadline(time.Now().Add(patience))
	go io.WriteString(conn, message) // the server may close before it has read everything
	method, _, _ := strings.Cut(message, " ")
	r := bufio.NewReader(conn)
	for range n {
		w, err := http.ReadResponse(r, &http.Request{Method: method})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("no response, and the connection is open")
		}
		if err != nil {
			return append(statuses, closed)
		}
		body, err := io.ReadAll(w.Body)
		must(t, err)
		// All refusals are problem documents, unless net/http wrote them.
		own := w.Header.Get("X-Request-Id") != "" && w.StatusCode >= 400
		if own && !bytes.Contains(body, []byte(`"request_id"`)) || w.Header.Get("X-Injected") != "" {
			t.Errorf("%d %v %s", w.StatusCode, w.Header, body)
		}
		statuses = append(statuses, w.StatusCode)
	}
	return statuses
}
