package worker

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"aiv/gateway/problem"
	"aiv/gateway/strictjson"
	"aiv/store/batch"
)

// maxBody is the largest body, in bytes.
const maxBody = 8 << 20

var jsonLimits = strictjson.Limits{Depth: 16, Values: 1_000_000}

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
	if err := h.memory.reserve(x, len(body)+2*72*min(countValues(body), jsonLimits.Values)); err != nil {
		return v, err
	}
	if v, err = strictjson.Parse(body, jsonLimits); err != nil {
		return v, &problem.Problem{Code: problem.InvalidJSON, Detail: "The body is not strict JSON: " + err.Error() + "."}
	}
	return v, nil
}

// countValues returns how many values a JSON text has at most.
func countValues(text []byte) int {
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
func endOfString(text []byte) int {
	for i := 0; ; i++ {
		next := bytes.IndexByte(text[i:], '"')
		if next < 0 {
			return len(text)
		}
		i += next
		escapes := 0
		for escapes < next && text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
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
func (h *Handler) readBody(x *exchange) (body []byte, err error) {
	if x.request.ContentLength > maxBody {
		return nil, tooLarge()
	}
	if err := h.memory.expect(x, int(x.request.ContentLength)); err != nil {
		return nil, err
	}
	if h.memory.transfer(x, func() { body, err = h.receive(x) }) {
		return nil, batch.ErrOverloaded
	}
	return body, err
}

func (h *Handler) receive(x *exchange) (body []byte, err error) {
	for len(body) <= maxBody {
		if len(body) == cap(body) {
			more := max(len(body), 4096)
			if n := int(x.request.ContentLength) + 1 - len(body); n > 0 && n < max(more, 64<<10) {
				more = n // one more than announced, so that the end is read without growing
			}
			if err := h.memory.reserve(x, more); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, cap(body)+more), body...)
		}
		n, err := x.request.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			if len(body) > maxBody {
				return nil, tooLarge()
			}
			return body, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, &problem.Problem{Code: problem.Unavailable, Header: problem.Retry(1), Detail: "The body was not received in time. Send the request again."}
		case err != nil:
			return nil, &problem.Problem{Code: problem.InvalidJSON, Detail: "The body is shorter than its announced length."}
		}
	}
	return nil, tooLarge()
}

func tooLarge() error {
	return &problem.Problem{Code: problem.BodyTooLarge, Detail: "The body may have at most 8 MiB. Split the request."}
}
