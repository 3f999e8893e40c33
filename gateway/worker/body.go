package worker

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"unsafe"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/store/strictjson"
)

// maxBody is the largest body, in bytes.
const maxBody = 8 << 20

// jsonLimits bound what a body may contain, beyond its size: parsed values take more memory than their text.
var jsonLimits = strictjson.Limits{Depth: 16, Values: 1_000_000}

// readJSON reads the request's body as strict JSON.
func (h *Handler) readJSON(x *exchange) (v strictjson.Value, err error) {
	if err := request.CheckMediaType(x.request.Header); err != nil {
		return v, err
	}
	body, err := h.readBody(x)
	if err != nil {
		return v, err
	}
	// Parsing needs two Members for each value: while it is collected, and in its slab.
	if err := h.memory.reserve(x, 2*int(unsafe.Sizeof(strictjson.Member{}))*min(countValues(body), jsonLimits.Values)); err != nil {
		return v, err
	}
	return request.Parse(body, jsonLimits)
}

// countValues returns an upper bound of the values of a JSON text. It skips strings by strings.IndexByte: to look at
// each byte would take about fifty times as long for answers without escapes.
func countValues(text string) int {
	n := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',', '[', '{':
			n++
		case '"':
			i += 1 + endOfString(text[i+1:])
		}
	}
	return n
}

// endOfString returns the index of the first quotation mark that is not escaped, or the length of the text.
func endOfString(text string) int {
	for i := 0; ; i++ {
		next := strings.IndexByte(text[i:], '"')
		if next < 0 {
			return len(text)
		}
		i += next
		escapes := 0
		// A quotation mark after an odd number of backslashes is escaped.
		for escapes < next && text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// readBody reads the body into memory that grows with the bytes received, not with the announced length: a body that is
// announced and never sent must not use up the budget, or slow workers would delay others.
func (h *Handler) readBody(x *exchange) (body string, err error) {
	if x.request.ContentLength > maxBody {
		return "", tooLarge()
	}
	// An unannounced length is -1, which always fits.
	if err := h.memory.expect(x, int(x.request.ContentLength)); err != nil {
		return "", err
	}
	r := &bodyReader{x: x, memory: &h.memory}
	defer r.free()
	if h.memory.transfer(x, http.NewResponseController(x.ResponseWriter).SetReadDeadline, func() { err = r.receive() }) {
		return "", tooSlow() // also if the end of the body was received at the same time: the deadline ends the request's context
	}
	if err != nil {
		return "", err
	}
	return r.text()
}

// A bodyReader receives a body in pieces. Pieces of 64 KiB are pooled.
type bodyReader struct {
	x      *exchange
	memory *budget
	full   [][]byte // pieces that are full
	last   []byte   // the piece that is being filled; nil before the first
	size   int      // bytes received
}

const piece = 64 << 10

var pieces = sync.Pool{New: func() any { return new([piece]byte) }}

// receive reads to the end of the body. It runs within budget.transfer, whose deadline makes Read fail.
func (r *bodyReader) receive() error {
	// A body without an announced length is read until it exceeds the bound.
	for r.size <= maxBody {
		if len(r.last) == cap(r.last) {
			if err := r.grow(); err != nil {
				return err
			}
		}
		n, err := r.x.request.Body.Read(r.last[len(r.last):cap(r.last)])
		r.last = r.last[:len(r.last)+n]
		r.size += n
		switch {
		case errors.Is(err, io.EOF):
			if r.size > maxBody {
				return tooLarge()
			}
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return tooSlow()
		case err != nil:
			return &problem.Problem{Code: problem.InvalidJSON, Detail: "The body ended early or is malformed."}
		}
	}
	return tooLarge()
}

// grow adds a piece: a small one for what may be a small body.
func (r *bodyReader) grow() error {
	n := int(r.x.request.ContentLength) + 1 // the end is read without another piece
	if n <= 0 || r.size > 0 {
		n = max(r.size, 4096)
	}
	n = min(n, piece)
	if err := r.memory.reserve(r.x, n); err != nil {
		return err
	}
	// The piece before is full.
	if r.last != nil {
		r.full = append(r.full, r.last)
	}
	if n == piece {
		r.last = pieces.Get().(*[piece]byte)[:0]
	} else {
		r.last = make([]byte, 0, n)
	}
	return nil
}

// text returns the body in one piece. Its memory is reserved in addition to the pieces: both exist for a moment. The
// reservation of the pieces ends with the next call of budget.keep, not with free.
func (r *bodyReader) text() (string, error) {
	if err := r.memory.reserve(r.x, r.size); err != nil {
		return "", err
	}
	var text strings.Builder
	text.Grow(r.size)
	for _, p := range r.full {
		text.Write(p)
	}
	text.Write(r.last)
	r.x.bodySize = r.size
	return text.String(), nil
}

// free returns the pieces to the pool.
func (r *bodyReader) free() {
	for _, p := range append(r.full, r.last) {
		// Smaller ones are left to the garbage collector. r.last is nil if nothing was received.
		if cap(p) == piece {
			pieces.Put((*[piece]byte)(p[:piece]))
		}
	}
}

func tooSlow() error {
	return &problem.Problem{Code: problem.Unavailable, Header: problem.Retry(1), Detail: "The body was not received in time. Send the request again."}
}

func tooLarge() error {
	return &problem.Problem{Code: problem.BodyTooLarge, Detail: "The body may have at most 8 MiB. Split the request."}
}
