package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aiv/auth"
	"aiv/gateway/request"
	"aiv/limits"
	"aiv/store"
)

// TestCursorHoldsForItsFilters: a cursor is valid for the same filters in any order, with any limit.
func TestCursorHoldsForItsFilters(t *testing.T) {
	x := &exchange{route: &route{method: "GET"}, admission: &limits.Admission{Credential: &auth.Credential{}}}
	bound := func(query string) string {
		x.params = request.ReadParameters(query)
		return x.bound()
	}
	first := bound("a=1&b=2")
	for query, same := range map[string]bool{"b=2&a=1": true, "limit=1&b=2&cursor=c&a=1": true, "a=2&b=1": false, "a=1": false, "a=1&b=2&c=": false} {
		if got := bound(query); (got == first) != same {
			t.Errorf("%s is bound to %q, and a=1&b=2 to %q", query, got, first)
		}
	}
}

// TestFilterBounds: a text may have 128 characters, and a list of ids 200.
func TestFilterBounds(t *testing.T) {
	text := textFilter("topic", func(f *string) *string { return f })
	ids := idsFilter("id", "run", func(f *[]store.ID) *[]store.ID { return f })
	for more, want := range []bool{true, false} {
		if got := text.set(new(string), strings.Repeat("é", 128+more)); got != want {
			t.Errorf("%d characters: got %v", 128+more, got)
		}
		if got := ids.set(new([]store.ID), strings.Repeat(",", 199+more)); got != want {
			t.Errorf("%d ids: got %v", 200+more, got)
		}
	}
}

// TestParametersAreBounded: the cost of a query string and the size of its response do not grow with its parameters.
func TestParametersAreBounded(t *testing.T) {
	for n, tooMany := range map[int]bool{request.MaxParameters: false, request.MaxParameters + 1: true, 1000: true} {
		query := strings.Repeat("tag&", n)
		plain := newLogicalRequest(http.MethodGet, "/v1/me", query)
		withPath, err := readQuery(httptest.NewRequest(http.MethodGet, Base+"?path=/v1/me&"+query, nil))
		if err != nil || plain.tooMany != tooMany || !withPath.tooMany ||
			len(plain.params) > request.MaxParameters+1 || len(withPath.params) > request.MaxParameters+1 {
			t.Errorf("%d parameters: %d and %d are read, too many: %v",
				n, len(plain.params), len(withPath.params), plain.tooMany)
		}
	}
	w := httptest.NewRecorder()
	if (&exchange{ResponseWriter: w}).fail(request.TooManyParameters()); w.Body.Len() > 1000 {
		t.Errorf("the response has %d bytes", w.Body.Len())
	}
}

// TestLargePages: a page ends early rather than become too large to be sent.
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
	x := &exchange{route: &route{method: "GET"}, admission: &limits.Admission{Credential: &auth.Credential{}}}
	for _, test := range []struct{ rows, want int }{{12, 8}, {8, 8}, {3, 3}} {
		p, err := l.page(g, x, rows[:test.rows], false)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Data       []string
			HasMore    bool    `json:"has_more"`
			NextCursor *string `json:"next_cursor"`
		}
		if err := json.Unmarshal(p.body, &body); err != nil {
			t.Fatal(err)
		}
		more := test.want < test.rows
		if len(body.Data) != test.want || body.HasMore != more || more != (body.NextCursor != nil) || more != (p.link != "") {
			t.Errorf("of %d rows the page has %d, has_more %v; want %d, %v", test.rows, len(body.Data), body.HasMore, test.want, more)
		}
		if body.NextCursor == nil {
			continue
		}
		if after, ok := g.open(x.bound(), *body.NextCursor, false); !ok || after.ID != rows[test.want-1] {
			t.Errorf("the next page of %d rows begins after %v, want %v", test.rows, after.ID, rows[test.want-1])
		}
	}
}
