package httpserver

import (
	"bytes"
	"strconv"
	"sync"
)

// net/http sends a response through a buffer of 4 KiB, which makes two writes of a larger one: a full buffer, and the rest.
// Over TCP the second takes a quarter of the processor time of a response of 12 kB, so both are sent by one write.

// maxJoined bounds the size of a response that is sent by one write. Larger ones would take longer to copy than to write.
const maxJoined = 32 << 10

// joined is the beginning of a response, with space for the rest.
type joined struct {
	data [maxJoined]byte
	size int
}

var joinedResponses = sync.Pool{New: func() any { return new(joined) }}

// beginsLarger reports whether p is a full buffer that begins a response, of which more is certain to be written: its header is
// complete and announces a longer body than p has.
func beginsLarger(p []byte) bool {
	const buffer, name = 4096, "\r\nContent-Length: "
	if len(p) != buffer || !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) {
		return false
	}
	header, body, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	_, value, _ := bytes.Cut(header, []byte(name))
	value, _, _ = bytes.Cut(value, []byte("\r\n"))
	length, err := strconv.Atoi(string(value))
	return err == nil && len(body) > 0 && len(body) < length // without a body it may answer HEAD
}

// join sends the beginning of a response together with p.
func (c *conn) join(p []byte) (int, error) {
	begun := c.begun
	c.begun = nil
	defer joinedResponses.Put(begun)
	k := copy(begun.data[begun.size:], p)
	n, err := c.Conn.Write(begun.data[:begun.size+k])
	n = max(0, n-begun.size)
	if err != nil || k == len(p) {
		return n, err
	}
	rest, err := c.Conn.Write(p[k:])
	return n + rest, err
}
