package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"aiv/gateway/mcp"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/store/batch"
	"aiv/store/strictjson"
)

// maxBody is the largest body, in bytes.
const maxBody = 1 << 20

// jsonLimits bound a body beyond its size. The largest legal run has 561 values at depth 3.
var jsonLimits = strictjson.Limits{Depth: 16, Values: 10_000}

// Bounds of the memory for bodies, in bytes: bodies being read, and bodies of runs that wait to be written. An account
// gets only a part, so that slow senders cannot block other accounts, however many keys they have.
const (
	maxBodies      = 32 << 20
	maxBodiesOfOne = maxBodies / 4
)

// readJSON reads a request's body as strict JSON.
func readJSON(x *exchange, r *http.Request) (strictjson.Value, error) {
	if r.Header["Content-Type"] == nil && withoutBody(r) {
		return strictjson.Value{}, &problem.Problem{Code: problem.UnsupportedMediaType,
			Detail: "The request has no body. Send one as Content-Type: application/json; send {} if the route takes no members."}
	}
	if err := request.CheckMediaType(r.Header); err != nil {
		return strictjson.Value{}, err
	}
	body, err := x.readBody(r)
	if err != nil {
		return strictjson.Value{}, err
	}
	return request.Parse(string(body), jsonLimits)
}

// withoutBody reports whether the body of a request is empty. If the length was not announced, it peeks at the
// beginning of the body, which the next read returns again.
func withoutBody(r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength == 0
	}
	// 16 bytes is the smallest buffer of package bufio. One byte is needed.
	b := bufio.NewReaderSize(r.Body, 16)
	r.Body = struct {
		io.Reader
		io.Closer
	}{b, r.Body}
	_, err := b.Peek(1)
	return errors.Is(err, io.EOF)
}

// readBody reads a body into memory that grows with what arrives, not with the length announced. The memory counts
// against the account until the exchange ends.
func (x *exchange) readBody(r *http.Request) ([]byte, error) {
	tooLarge := &problem.Problem{Code: problem.BodyTooLarge, Detail: fmt.Sprintf("The body may have at most %d bytes.", maxBody)}
	if r.ContentLength > maxBody {
		return nil, tooLarge
	}
	size := min(r.ContentLength+1, 16<<10) // one more, so that the end is read without growing
	if size <= 0 {
		size = 4096 // the length is not announced
	}
	var body []byte
	for {
		if len(body) == cap(body) {
			// The first buffer has size bytes. After that, the memory doubles.
			more := max(int(size), len(body))
			if !x.bodies.take(x.credential().AccountID, more) {
				return nil, batch.ErrOverloaded
			}
			x.held += more
			body = slices.Grow(body, more)
		}
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case len(body) > maxBody:
			return nil, tooLarge
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, &problem.Problem{Code: problem.InvalidJSON, Detail: "The body was not received completely."}
		}
	}
}

// bodyOf returns the body of a write and its location, from the envelope or from the plain address. The arguments of a
// tool have no envelope around them.
func bodyOf(x *exchange, r *http.Request) (v *strictjson.Value, at *request.Location, err error) {
	switch {
	case x.tool != nil:
		return x.envelope, request.At(mcp.At), nil
	case x.envelope != nil:
		return x.envelope, request.At("#/body"), nil
	}
	body, err := readJSON(x, r)
	return &body, request.At("#"), err
}

// bodyMembers are the names of the members of a body. Only the body of a change has no required members, which is how
// readers recognize a change.
type bodyMembers struct{ required, optional []string }

// readEmptyBody requires the body {}.
func readEmptyBody(x *exchange, r *http.Request) error {
	body, at, err := bodyOf(x, r)
	if err != nil {
		return err
	}
	var f problem.Faults
	request.NewObject(body, at, &f)
	if len(f) > 0 {
		return &problem.Problem{Code: problem.InvalidRequest, Detail: "The body must be an empty object.", Errors: f}
	}
	return nil
}
