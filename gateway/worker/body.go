package worker

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"aiv/gateway/problem"
	"aiv/gateway/strictjson"
	"aiv/store/batch"
)

// maxBody is the largest body, in bytes.
const maxBody = 8 << 20

var jsonLimits = strictjson.Limits{Depth: 16, Values: 1_000_000}

// maxMemory bounds the memory of all requests for bodies and the values parsed from them, in bytes. A single request is always
// served.
const maxMemory = 96 << 20

// A budget is the memory that is left. Requests beyond it are refused, because waiting ones would keep their bodies.
type budget struct {
	mu     sync.Mutex
	free   int
	served int // requests with a reservation
}

// reserve reserves n bytes more for a request that has reserved some already, or none.
func (b *budget) reserve(held, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	alone := b.served == 0 || b.served == 1 && held > 0
	if n > b.free && !alone {
		return false
	}
	if held == 0 {
		b.served++
	}
	b.free -= n
	return true
}

// release ends a request's reservation.
func (b *budget) release(held int) {
	if held == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served--
	b.free += held
}

func (h *Handler) reserve(x *exchange, n int) error {
	if n <= 0 {
		return nil
	}
	if !h.memory.reserve(x.reserved, n) {
		return batch.ErrOverloaded
	}
	x.reserved += n
	return nil
}

// readJSON reads the request's body as strict JSON.
func (h *Handler) readJSON(x *exchange) (v strictjson.Value, err error) {
	if err := checkMediaType(x.request.Header); err != nil {
		return v, err
	}
	body, err := h.readBody(x)
	if err != nil {
		return v, err
	}
	// The parser copies the body, and each value takes 72 bytes at least twice, as slices grow.
	values := 1
	for _, c := range []byte(",[{") {
		values += bytes.Count(body, []byte{c})
	}
	if err := h.reserve(x, len(body)+2*72*min(values, jsonLimits.Values)); err != nil {
		return v, err
	}
	if v, err = strictjson.Parse(body, jsonLimits); err != nil {
		return v, &problem.Problem{Code: problem.InvalidJSON, Detail: "The body is not strict JSON: " + err.Error() + "."}
	}
	return v, nil
}

func checkMediaType(h http.Header) error {
	types := h["Content-Type"]
	if len(types) == 1 && types[0] != "application/json" {
		mediaType, params, err := mime.ParseMediaType(types[0])
		charset, given := params["charset"]
		if err != nil || mediaType != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
			types = nil
		}
	}
	if len(types) != 1 {
		return &problem.Problem{Code: problem.UnsupportedMediaType, Detail: "Send the body as Content-Type: application/json, in UTF-8."}
	}
	if encoding := h["Content-Encoding"]; len(encoding) > 0 && !strings.EqualFold(encoding[0], "identity") {
		return &problem.Problem{Code: problem.UnsupportedMediaType, Detail: "Send the body without a Content-Encoding."}
	}
	return nil
}

// readBody reads the body into memory that grows with the bytes received, not with the announced length.
func (h *Handler) readBody(x *exchange) ([]byte, error) {
	tooLarge := &problem.Problem{Code: problem.BodyTooLarge, Detail: "The body may have at most 8 MiB. Split the request."}
	if x.request.ContentLength > maxBody {
		return nil, tooLarge
	}
	var body []byte
	for len(body) <= maxBody {
		if len(body) == cap(body) {
			more := max(len(body), 4096)
			if n := int(x.request.ContentLength) + 1 - len(body); n > 0 && n < max(more, 64<<10) {
				more = n // one more than announced, so that the end is read without growing
			}
			if err := h.reserve(x, more); err != nil {
				return nil, err
			}
			body = slices.Grow(body, more)
		}
		n, err := x.request.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			if len(body) > maxBody {
				return nil, tooLarge
			}
			return body, nil
		case err != nil:
			return nil, &problem.Problem{Code: problem.InvalidJSON, Detail: "The body is shorter than its announced length, or was not received in time."}
		}
	}
	return nil, tooLarge
}
