package httpserver

import (
	"bytes"
	"net"
	"strconv"
	"sync"
)

// responses sends a larger response of an announced length by one system call.
//
// net/http sends a response through a buffer of 4 KiB, which makes two writes of a larger one: the full buffer, and the rest.
// Over TCP the second takes a quarter of the processor time of a response of 12 kB, so the buffer is kept, and both are sent by
// one system call. A handler that calls Flush when the buffer is exactly full has it sent with its next write.
type responses struct {
	next  bool    // the next write is the first of a response
	begun *joined // the beginning of a response that is sent with the next write
}

// bufferSize is the size of net/http's buffer.
const bufferSize = 4096

// A joined is the beginning of a response, and the write that sends it.
type joined struct {
	data   [bufferSize]byte
	pieces [2][]byte   // data and the rest
	unsent net.Buffers // of pieces
}

var joinedResponses = sync.Pool{New: func() any { return new(joined) }}

func (r *responses) write(c net.Conn, p []byte) (int, error) {
	first := r.next
	r.next = false
	switch {
	case r.begun != nil:
		return r.join(c, p)
	case first && beginsLarger(p):
		r.begun = joinedResponses.Get().(*joined)
		copy(r.begun.data[:], p)
		return len(p), nil
	}
	return c.Write(p)
}

// join sends the beginning of a response together with p.
func (r *responses) join(c net.Conn, p []byte) (int, error) {
	begun := r.begun
	r.begun = nil
	begun.pieces = [2][]byte{begun.data[:], p}
	begun.unsent = begun.pieces[:]
	if limited, ok := c.(*limitedConn); ok {
		c = limited.Conn // net.Buffers needs the connection of package net
	}
	n, err := begun.unsent.WriteTo(c)
	begun.pieces[1] = nil
	joinedResponses.Put(begun)
	return int(max(0, n-bufferSize)), err
}

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
