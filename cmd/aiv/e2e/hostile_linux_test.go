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

// TestFaultHostileMessages sends malformed and misleading messages, of which net/http rejects many: its tests have all
// their variants. Each gets the listed responses; then the connection is closed or stays open. Other clients are not
// affected.
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
	for _, test := range []struct {
		name, message string
		want          []int // statuses, or closed
	}{
		{"as it should be", me, []int{200}},
		{"chunks as they should be", chunked + chunk, []int{405, closed}},
		{"ten in one write", strings.Repeat(me, 10), slices.Repeat([]int{200}, 10)},
		{"a write and a read in one write", post + length + "\r\n" + one + me, []int{405, 200}},

		// Conflicting lengths. One response means that the rest was not read as a second request.
		{"two lengths", post + length + "Content-Length: 3\r\n\r\n" + one + me, []int{400, closed}},
		{"an unknown coding", post + "Transfer-Encoding: xchunked\r\n\r\n" + chunk, []int{501, closed}},
		// RFC 9112, 6.3: chunked overrides the length, and the connection ends.
		{"a length beside chunked", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + me, []int{405, closed}},
		{"chunked in HTTP/1.0", strings.Replace(chunked, "HTTP/1.1", "HTTP/1.0", 1) + chunk + me, []int{400, closed}},

		{"a chunk longer than its size", chunked + "1\r\n{}\r\n0\r\n\r\n", []int{400, closed}},
		{"a chunk's extension without end", chunked + "2;" + strings.Repeat("x", 1<<20), []int{400, closed}},
		{"trailers", chunked + fmt.Sprintf("%x\r\n%s\r\n0\r\nAuthorization: Bearer x\r\n\r\n", len(one), one), []int{405}},

		// Headers.
		{"no host", "GET " + gateway.Base + "?path=/v1/me HTTP/1.1\r\n\r\n", []int{400, closed}},
		{"two hosts", get + "Host: a\r\nHost: b\r\n\r\n", []int{400, closed}},
		{"a space before the colon", get + head + "Content-Length : 5\r\n\r\n", []int{400, closed}},
		{"a NUL in the key", get + "Host: a\r\nAuthorization: Bearer a\x00b\r\n\r\n", []int{400, closed}},
		{"a carriage return in a header", get + head + "X: a\rb\r\n\r\n", []int{400, closed}},
		{"a header of 1 MiB", get + head + "X: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", []int{431, closed}},
		{"an address of 1 MiB", "GET " + gateway.Base + "?path=" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\n" + head + "\r\n", []int{431, closed}},
		{"a line without end", strings.Repeat("x", 1<<20), []int{431, closed}},
		{"a line feed in a value", get + "Host: a\r\nAuthorization: Bearer " + key.Key + "\nX-Injected: yes\r\n\r\n", []int{200}},

		// Other protocols, other methods, other addresses.
		{"HTTP/0.9", "GET " + gateway.Base + "\r\n\r\n", []int{400, closed}},
		{"HTTP/1.0", strings.Replace(me, "HTTP/1.1", "HTTP/1.0", 1), []int{200, closed}},
		{"HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{404, closed}},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400, closed}},
		{"an address as a proxy gets it", strings.Replace(me, "GET ", "GET http://elsewhere", 1), []int{200}},
		{"a NUL in an address", strings.Replace(me, "/me", "/me%00", 1), []int{404}},
		{"a line feed in an address", strings.Replace(me, "/me", "/me%0d%0aX-Injected:%20yes", 1), []int{404}},
		{"invalid UTF-8 in an address", strings.Replace(me, "/me", "/me%ff", 1), []int{404}},
		{"an address with .. segments", strings.Replace(me, "?path=/v1/me", "/../../etc/passwd", 1), []int{404}},
		{"an asterisk", "OPTIONS * HTTP/1.1\r\n" + head + "\r\n", []int{404}},
		{"lower case", strings.Replace(me, "GET", "get", 1), []int{405}},
		{"TRACE", strings.Replace(me, "GET", "TRACE", 1), []int{405}},
		{"CONNECT", strings.Replace(me, "GET", "CONNECT", 1), []int{405}},

		// Bodies. Package strictjson refuses what is not JSON.
		{"1 GiB announced", post + "Content-Length: 1073741824\r\n\r\n{", []int{413, closed}},
		{"1 GiB announced, and asked whether to come", post + "Content-Length: 1073741824\r\nExpect: 100-continue\r\n\r\n", []int{413, closed}},
		{"chunks without end", chunked + strings.Repeat("10000\r\n"+strings.Repeat(" ", 0x10000)+"\r\n", 512), []int{413, closed}},
		{"an unknown expectation", post + "Expect: 200-ok\r\n" + length + "\r\n" + one, []int{417, closed}},
		{"a body with a read", strings.Replace(me, "\r\n\r\n", "\r\nContent-Length: 5\r\n\r\nhello", 1) + me, []int{200, 200}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := p.raw(t, test.message, len(test.want))
			if !slices.Equal(got, test.want) {
				t.Errorf("%.80q: got %v, want %v", test.message, got, test.want)
			}
		})
	}
	p.serves(t, key.Key)
	p.memory(t, maxMemory)
}

// raw sends a message and returns the statuses of up to n responses, and closed if the connection was closed before.
func (p *process) raw(t *testing.T, message string, answers int) (statuses []int) {
	t.Helper()
	conn, err := net.Dial("tcp", p.host())
	must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	go io.WriteString(conn, message) // the server may close before it has read everything
	method, _, _ := strings.Cut(message[:min(len(message), 16)], " ")
	r := bufio.NewReader(conn)
	for range answers {
		w, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("no response, and the connection is open")
			}
			return append(statuses, closed)
		}
		body, err := io.ReadAll(w.Body)
		if err != nil {
			t.Errorf("reading the body of %d: %v", w.StatusCode, err)
		}
		// All refusals but those of net/http are problem documents.
		if w.Header.Get("X-Request-Id") != "" && w.StatusCode >= 400 && method != "HEAD" && !bytes.Contains(body, []byte(`"request_id"`)) {
			t.Errorf("%d %s", w.StatusCode, body)
		}
		if w.Header.Get("X-Injected") != "" {
			t.Error("a header was injected")
		}
		statuses = append(statuses, w.StatusCode)
	}
	return statuses
}
