package gateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aiv/gateway/request"
	"aiv/store"
)

// TestCursorIsCanonical: only the text that seal made is accepted, and not the others that decode to the same bytes.
func TestCursorIsCanonical(t *testing.T) {
	g := New(Config{CursorSecret: []byte("secret")})
	cursor := g.seal("list", store.Position{Time: time.Unix(1, 0)}, false)
	if _, ok := g.open("list", cursor, false); !ok {
		t.Fatal("a cursor is not accepted")
	}
	for _, changed := range []string{cursor + "\n", cursor + "\r\n", "\n" + cursor, cursor[:4] + "\n" + cursor[4:], cursor + "=", cursor + " "} {
		if _, ok := g.open("list", changed, false); ok {
			t.Errorf("%q is accepted for %q", changed, cursor)
		}
	}
}

// TestParametersAreBounded: the cost of a query string and the size of its response do not grow with its parameters.
func TestParametersAreBounded(t *testing.T) {
	query := "path=/v1/runs" + strings.Repeat("&tag", 2250) + strings.Repeat("&cursor", 1280)
	r := httptest.NewRequest(http.MethodGet, Base+"?"+query, nil)
	w := httptest.NewRecorder()
	x := &exchange{ResponseWriter: w}
	l, err := readQuery(r)
	if err != nil || !l.tooMany {
		t.Fatalf("too many: %v, %v", l.tooMany, err)
	}
	x.fail(request.TooManyParameters())
	if len(l.params) > request.MaxParameters+1 || w.Body.Len() > 1000 {
		t.Errorf("%d bytes of query are read as %d parameters and answered by %d bytes", len(query), len(l.params), w.Body.Len())
	}
}
