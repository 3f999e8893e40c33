package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"aiv/auth"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/limits"
	"aiv/store"
	"aiv/store/strictjson"
)

// TestShareIsBounded: what is in use is bounded, for one account and for all, and can be taken again when it was
// released.
func TestShareIsBounded(t *testing.T) {
	s := share{max: 4, maxOfOne: 2}
	first, second, late := store.ID{1}, store.ID{2}, store.ID{3}
	for _, account := range []store.ID{first, second} {
		if !s.take(account, 2) {
			t.Error("an account cannot take its part")
		}
		if s.take(account, 1) {
			t.Error("one account exceeds its bound")
		}
	}
	if s.take(late, 1) {
		t.Error("the total exceeds its bound")
	}
	s.release(first, 2)
	if !s.take(late, 1) || !s.take(first, 1) {
		t.Error("what was released cannot be taken")
	}
	s.release(late, 1)
	s.release(first, 1)
	s.release(second, 2)
	if s.taken != 0 || len(s.by) != 0 {
		t.Errorf("%d of %d accounts remain after all were released", s.taken, len(s.by))
	}
}

// TestLargestBody: the largest body is read, into memory that counts from when it is received, and a larger one is not,
// whether or not its length is announced and its end is read with its last bytes.
func TestLargestBody(t *testing.T) {
	t.Parallel()
	g := New(Config{})
	for _, size := range []int{maxBody, maxBody + 1} {
		for _, length := range []int64{-1, int64(size)} {
			text := strings.Repeat(" ", size)
			for i, body := range []io.Reader{strings.NewReader(text), iotest.DataErrReader(strings.NewReader(text))} {
				credential := &auth.Credential{AccountID: store.NewID()}
				x := &exchange{bodies: &g.bodies, admission: &limits.Admission{Credential: credential}}
				received := 0
				counted := onWrite(func(n int) {
					if received += n; 2*g.bodies.taken < received { // Go may allocate more than was asked for
						t.Fatalf("%d of %d bytes are received, %d count", received, size, g.bodies.taken)
					}
				})
				got, err := x.readBody(&http.Request{ContentLength: length, Body: io.NopCloser(io.TeeReader(body, counted))})
				x.bodies.release(x.credential().AccountID, x.held)
				p, tooLarge := errors.AsType[*problem.Problem](err)
				if size <= maxBody && (err != nil || string(got) != text || x.held < size) ||
					size > maxBody && (!tooLarge || p.Code != problem.BodyTooLarge) {
					t.Errorf("%d bytes, Content-Length %d, reader %d: got %d bytes, %v", size, length, i, len(got), err)
				}
			}
		}
	}
}

// onWrite is called with the length of each write.
type onWrite func(n int)

func (f onWrite) Write(p []byte) (int, error) {
	f(len(p))
	return len(p), nil
}

// TestFaultsAreShort: the reported errors do not grow with the names in a body.
func TestFaultsAreShort(t *testing.T) {
	v, err := strictjson.Parse(`{"`+strings.Repeat("é", maxBody/4)+`": 1}`, jsonLimits)
	if err != nil {
		t.Fatal(err)
	}
	var f problem.Faults
	request.NewObject(&v, request.At("#"), &f)
	if len(f) != 1 {
		t.Fatalf("%d faults, want 1", len(f))
	}
	if n := len(f[0].Pointer) + len(f[0].Detail); n > 300 {
		t.Errorf("the fault has %d bytes", n)
	}
}
