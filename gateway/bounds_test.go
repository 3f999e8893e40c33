package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/auth"
	"aiv/gateway/problem"
	"aiv/limits"
	"aiv/store"
	"aiv/store/batch"
)

// TestLargestBody: the largest body is read, into memory that counts from when it is received, and a larger one is not,
// whether or not its length is announced.
func TestLargestBody(t *testing.T) {
	t.Parallel()
	bodies := &New(Config{}).bodies
	for _, size := range []int{maxBody, maxBody + 1} {
		text := strings.Repeat(" ", size)
		for _, length := range []int64{-1, int64(size)} {
			x := &exchange{bodies: bodies, admission: someAdmission}
			received := httptest.NewRecorder()
			counted := hookedWriter{received, func() {
				if 2*bodies.taken < received.Body.Len() { // Go may allocate more than was asked for
					t.Fatalf("%d of %d bytes are received, %d count", received.Body.Len(), size, bodies.taken)
				}
			}}
			body := io.TeeReader(strings.NewReader(text), counted)
			got, err := x.readBody(&http.Request{ContentLength: length, Body: io.NopCloser(body)})
			bodies.release(x.credential().AccountID, x.held)
			p, tooLarge := errors.AsType[*problem.Problem](err)
			if size <= maxBody && (err != nil || string(got) != text || x.held < size) ||
				size > maxBody && (!tooLarge || p.Code != problem.BodyTooLarge) {
				t.Errorf("%d bytes, Content-Length %d: got %d bytes, %v", size, length, len(got), err)
			}
		}
	}
}

// someAdmission is the admission of a credential without a name.
var someAdmission = &limits.Admission{Credential: &auth.Credential{}}

// TestReadsThatWaitAreBounded: an account cannot take all places in the queue. A read leaves it when it is served, when
// its request has ended, and when it has waited for too long.
func TestReadsThatWaitAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newReadQueue(1, 12) // 3 for an account
		release, err := q.acquire(t.Context(), store.ID{1}, nil)
		must(t, err)
		ends := make(chan error, 10)
		wait := func(ctx context.Context, account byte) {
			go func() {
				release, err := q.acquire(ctx, store.ID{account}, nil)
				if err == nil {
					release()
				}
				ends <- err
			}()
			synctest.Wait()
		}
		ended := func(what string, want ...error) {
			t.Helper()
			synctest.Wait()
			var got []error
			for len(ends) > 0 {
				got = append(got, <-ends)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", what, got, want)
			}
		}
		leaving, leave := context.WithCancel(t.Context())
		wait(leaving, 1)
		for range 3 {
			wait(t.Context(), 1)
		}
		ended("the fourth read of an account that waits", batch.ErrOverloaded)
		wait(t.Context(), 2)
		leave()
		ended("the request has ended", batch.ErrOverloaded)
		time.Sleep(maxReadWait / 2)
		for account := range byte(10) {
			wait(t.Context(), 10+account)
		}
		ended("the thirteenth read of any account that waits", batch.ErrOverloaded)
		time.Sleep(maxReadWait / 2)
		ended("too long", batch.ErrOverloaded, batch.ErrOverloaded, batch.ErrOverloaded)
		release()
		ended("served", slices.Repeat([]error{nil}, 9)...)
		if q.waiting.taken != 0 || len(q.waiting.by) != 0 {
			t.Errorf("%d reads of %d accounts wait after all have ended", q.waiting.taken, len(q.waiting.by))
		}
	})
}

// TestLargePages: a page ends early rather than become too large to be sent, and the next one follows its last row.
func TestLargePages(t *testing.T) {
	g := New(Config{CursorSecret: []byte("secret")})
	l := &list[struct{}, store.ID]{
		append:  func(b []byte, _ *store.ID) []byte { return append(b, `"`+strings.Repeat("x", 1<<20)+`"`...) },
		sortKey: func(id *store.ID) store.Position { return store.Position{ID: *id} },
	}
	rows := make([]store.ID, 12)
	for i := range rows {
		rows[i] = store.NewID()
	}
	x := &exchange{route: &route{method: "GET"}, admission: someAdmission}
	for _, test := range []struct{ rows, want int }{{12, 8}, {8, 8}, {3, 3}} {
		p, err := l.page(g, x, rows[:test.rows], false)
		must(t, err)
		var body struct {
			Data       []string
			NextCursor string `json:"next_cursor"`
		}
		must(t, json.Unmarshal(p.body, &body))
		after, more := g.open(x.bound(), body.NextCursor, false)
		if len(body.Data) != test.want || more != (test.want < test.rows) || more && after.ID != rows[test.want-1] {
			t.Errorf("of %d rows the page has %d, and the next one begins after %v", test.rows, len(body.Data), after)
		}
	}
}
