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
	"aiv/store/batch"
	"aiv/store/strictjson"
)

// TestBodies: the memory for bodies is bounded, for one account and for all, and released memory can be taken again.
func TestBodies(t *testing.T) {
	t.Parallel()
	b := share{max: maxBodies, maxOfOne: maxBodiesOfOne}
	var ids []store.ID
	for range maxBodies / maxBodiesOfOne {
		ids = append(ids, store.NewID())
	}
	for _, id := range ids {
		for taken := 0; taken < maxBodiesOfOne; taken += maxBody {
			if !b.take(id, maxBody) {
				t.Fatalf("%d bytes were refused after %d", maxBody, taken)
			}
		}
		if b.take(id, 1) {
			t.Error("one account exceeds its bound")
		}
	}
	late := store.NewID()
	if b.take(late, 1) {
		t.Error("the total exceeds its bound")
	}
	b.release(ids[0], maxBodiesOfOne)
	if !b.take(late, maxBody) || !b.take(ids[0], maxBody) {
		t.Error("released memory cannot be taken")
	}
	b.release(late, maxBody)
	b.release(ids[0], maxBody)
	for _, id := range ids[1:] {
		b.release(id, maxBodiesOfOne)
	}
	if b.taken != 0 || len(b.by) != 0 {
		t.Errorf("%d bytes of %d accounts remain after all were released", b.taken, len(b.by))
	}
}

// TestLargestBody: the largest body is read and a larger one is not, whether or not its length is announced and its end
// is read with its last bytes.
func TestLargestBody(t *testing.T) {
	t.Parallel()
	g := New(Config{})
	for _, size := range []int{maxBody, maxBody + 1} {
		for _, length := range []int64{-1, int64(size)} {
			text := strings.Repeat(" ", size)
			for i, body := range []io.Reader{strings.NewReader(text), iotest.DataErrReader(strings.NewReader(text))} {
				x := &exchange{bodies: &g.bodies, admission: &limits.Admission{Credential: &auth.Credential{AccountID: store.NewID()}}}
				got, err := x.readBody(&http.Request{ContentLength: length, Body: io.NopCloser(body)})
				x.bodies.release(x.credential().AccountID, x.held)
				p, tooLarge := errors.AsType[*problem.Problem](err)
				if size <= maxBody && (err != nil || string(got) != text) || size > maxBody && (!tooLarge || p.Code != problem.BodyTooLarge) {
					t.Errorf("%d bytes, Content-Length %d, reader %d: got %d bytes, %v", size, length, i, len(got), err)
				}
			}
		}
	}
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

// TestReadsOfOneAccount: reads of one account that wait do not keep those of another account from waiting.
func TestReadsOfOneAccount(t *testing.T) {
	t.Parallel()
	r := newReadQueue(1, 8)
	release, err := r.acquire(t.Context(), store.NewID())
	if err != nil {
		t.Fatal(err)
	}
	account, ended := store.NewID(), make(chan error)
	wait := func(account store.ID) {
		release, err := r.acquire(t.Context(), account)
		if err == nil {
			release()
		}
		ended <- err
	}
	const asked, part = 5, 2
	for range asked {
		go wait(account)
	}
	for range asked - part {
		if err := <-ended; !errors.Is(err, batch.ErrOverloaded) {
			t.Errorf("a read beyond the part of an account: got %v", err)
		}
	}
	go wait(store.NewID())
	release()
	for range part + 1 {
		if err := <-ended; err != nil {
			t.Errorf("a read within its part: got %v", err)
		}
	}
}
