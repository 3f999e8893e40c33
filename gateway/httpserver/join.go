package httpserver

import (
	"bytes"
	"net"
	"strconv"
	"sync"
)

// net/http sends a response through a buffer of 4 KiB, which makes two writes of a larger one: the full buffer, and the rest.
// Over TCP the second takes a quarter of the processor time of a response of 12 kB, so the buffer is kept, and both are sent by
// one system call. A handler that calls Flush when the buffer is exactly full has it sent with its next write.

// bufferSize is the size of net/http's buffer.
const bufferSize = 4096

// joined is the beginning of a response.
type joined struct {
	data   [bufferSize]byte
	pieces [2][]byte   // data and the rest
	unsent net.Buffers // of pieces
}

var joinedResponses = sync.Pool{New: func() any { return new(joined) }}

// beginsLarger reports whether p, the first write of a response, is a full buffer that another write follows unless the handler
// fails: its header is complete and announces a longer body than p has. Without a body it may be the response to HEAD.
func beginsLarger(p []byte) bool {
	if len(p) != bufferSize || !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) {
		return false
	}
	header, body, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	_, value, _ := bytes.Cut(header, []byte("\r\nContent-Length: "))
	value, _, _ = bytes.Cut(value, []byte("\r\n"))
	length, err := strconv.Atoi(string(value))
	return err == nil && len(body) > 0 && len(body) < length
}

// keep keeps the beginning of a response until the next write.
func (c *conn) keep(p []byte) {
	c.begun = joinedResponses.Get().(*joined)
	copy(c.begun.data[:], p)
}

// join sends the beginning of a response together with p.
func (c *conn) join(p []byte) (int, error) {
	begun := c.begun
	c.begun = nil
	begun.pieces = [2][]byte{begun.data[:], p}
	begun.unsent = begun.pieces[:]
	to := c.Conn
	if limited, ok := to.(*limitedConn); ok {
		to = limited.Conn // net.Buffers needs the connection of package net
	}
	n, err := begun.unsent.WriteTo(to)
	begun.pieces[1] = nil
	joinedResponses.Put(begun)
	return int(max(0, n-bufferSize)), err
}
