package gateway

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/insights/visibility"
	"aiv/runs/schedules"
	"aiv/store"
)

// TestOriginAllowed: a browser may use the tools from a page of their own address only, at a loopback address only by a
// loopback name.
func TestOriginAllowed(t *testing.T) {
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	other := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080}
	for _, tt := range []struct {
		at      net.Addr
		host    string
		want    bool
		origins []string
	}{
		{loopback, "evil.example", true, nil}, // a reverse proxy
		{loopback, "localhost:8080", true, []string{"http://LocalHost:8080"}},
		{loopback, "127.8.9.1:8080", true, []string{"http://127.8.9.1:8080"}},
		{loopback, "[::1]", true, []string{"http://[::1]:80"}},
		{loopback, "localhost:443", true, []string{"https://localhost"}},
		{loopback, "localhost:80", false, []string{"https://localhost"}},
		{loopback, "evil.example:8080", false, []string{"http://evil.example:8080"}}, // DNS rebinding
		{loopback, "localhost.evil.example", false, []string{"http://localhost.evil.example"}},
		{loopback, "localhost:8080", false, []string{"http://127.0.0.1:8080"}},
		{other, "api.example:443", true, []string{"https://api.example"}},
		{&net.UnixAddr{}, "api.example", true, []string{"https://api.example"}},
		{other, "api.example", false, []string{"https://api.example", "https://api.example"}},
		{other, "api.example", false, []string{"https://other.example"}},
		{other, "api.example", false, []string{"null"}},
		{other, "api.example", false, []string{""}},
		{other, "api.example", false, []string{"https://api.example/"}},
		{other, "api.example", false, []string{"https://user@api.example"}},
		{other, "api.example", false, []string{"ftp://api.example"}},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, tt.at))
		r.Host = tt.host
		if tt.origins != nil {
			r.Header["Origin"] = tt.origins
		}
		if got := originAllowed(r); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

// TestCursorHoldsForItsFilters: a cursor is valid for the same filters in any order, with any limit.
func TestCursorHoldsForItsFilters(t *testing.T) {
	x := &exchange{route: &route{method: "GET"}, admission: someAdmission}
	bound := func(query string) string {
		x.params = request.ReadParameters(query)
		return x.bound()
	}
	first := bound("a=1&b=2")
	for query, same := range map[string]bool{"b=2&a=1": true, "limit=1&b=2&cursor=c&a=1": true,
		"a=2&b=1": false, "a=1": false, "a=1&b=2&c=": false} {
		if got := bound(query); (got == first) != same {
			t.Errorf("%s is bound to %q, and a=1&b=2 to %q", query, got, first)
		}
	}
}

// TestRowsAfter: a page of sources follows the last row of the previous one. If that row has moved, the page begins
// where the next smaller number of answers does.
func TestRowsAfter(t *testing.T) {
	brand := store.NewID()
	rows := []visibility.SourceRow{
		{Host: "a.example", Answers: 3},
		{Host: "b.example", Answers: 2, Brand: &brand}, {Host: "b.example", Answers: 2},
		{Host: "c.example", Page: "c.example/x", Answers: 2}, {Host: "d.example", Answers: 1},
	}
	begins := func(row visibility.SourceRow, want int) {
		t.Helper()
		if got := len(rows) - len(rowsAfter(rows, &store.Position{Text: sourcePosition(&row)})); got != want {
			t.Errorf("after %+v: begins at %d, want %d", row, got, want)
		}
	}
	for i, row := range rows {
		begins(row, i+1)
	}
	begins(visibility.SourceRow{Host: "z.example", Answers: 9}, 0)
	begins(visibility.SourceRow{Host: "z.example", Answers: 3}, 1)
	begins(visibility.SourceRow{Host: "c.example", Page: "c.example/y", Answers: 2}, 4)
	begins(visibility.SourceRow{Host: "d.example", Answers: 0}, 5)
}

// TestDateIsItsFirstInstant: a date is its first instant in a time zone. Package visibility tests days on which clocks
// are changed.
func TestDateIsItsFirstInstant(t *testing.T) {
	for _, tt := range []struct{ zone, value, want string }{
		{"Europe/Rome", "2026-03-30", "2026-03-29T22:00:00.000000Z"},
		{"Europe/Rome", "2026-03-01T10:00:00.0000001z", "2026-03-01T10:00:00.000001Z"},
		{"Europe/Rome", "0001-01-01", ""},
		{"UTC", "0001-01-01", "0001-01-01T00:00:00.000000Z"},
		{"America/New_York", "9999-12-31", "9999-12-31T05:00:00.000000Z"},
		{"UTC", "9999-12-31T23:59:59.9999999Z", ""},
		{"UTC", "2026-02-29", ""}, {"UTC", "2026-3-1", ""}, {"UTC", "2026-03-01T10:00:00", ""}, {"UTC", "", ""},
	} {
		got := ""
		if at, err := moment(tt.value, zoneOf(t, tt.zone)); err == nil {
			got = store.FormatTime(at)
		}
		if got != tt.want {
			t.Errorf("%s in %s: got %q, want %q", tt.value, tt.zone, got, tt.want)
		}
	}
}

// TestPageWindow: the window of pages may have 92 days, one of which may have 25 hours.
func TestPageWindow(t *testing.T) {
	for _, tt := range []struct {
		zone, from, to string
		want           bool
	}{
		{"UTC", "2026-01-01", "2026-04-03", false},
		{"UTC", "2026-01-01", "2026-04-03T00:00:00.000001Z", true},
		{"UTC", "2026-08-01", "2026-11-01T01:00:00Z", true},
		{"Europe/Rome", "2026-08-01", "2026-11-01", false},
		{"Europe/Rome", "2026-08-01", "2026-11-02", true},
	} {
		w := window{zone: zoneOf(t, tt.zone), times: map[string]string{"from": tt.from, "to": tt.to}}
		var faults problem.Faults
		if from, to := w.span("from", "to", &faults); w.isWide(from, to) != tt.want || faults != nil {
			t.Errorf("%+v: got %v; %v", tt, !tt.want, faults)
		}
	}
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := schedules.LoadZone(name)
	must(t, err)
	return zone
}
