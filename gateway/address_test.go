package gateway

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/insights/visibility"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/storetest"
)

// TestOriginAllowed: a browser may use the tools from a page of their own address only, at a loopback address only by a
// loopback name.
func TestOriginAllowed(t *testing.T) {
	for request, want := range map[string]bool{ // the address of the listener, Host, and each Origin
		"127.0.0.1 evil.example":                                         true, // a reverse proxy
		"127.0.0.1 localhost:8080 http://LocalHost:8080":                 true,
		"127.0.0.1 127.8.9.1:8080 http://127.8.9.1:8080":                 true,
		"127.0.0.1 [::1] http://[::1]:80":                                true,
		"127.0.0.1 localhost:443 https://localhost":                      true,
		"127.0.0.1 localhost:80 https://localhost":                       false,
		"127.0.0.1 evil.example:8080 http://evil.example:8080":           false, // DNS rebinding
		"127.0.0.1 localhost.evil.example http://localhost.evil.example": false,
		"127.0.0.1 localhost:8080 http://127.0.0.1:8080":                 false,
		"192.0.2.1 api.example:443 https://api.example":                  true,
		"unix api.example https://api.example":                           true,
		"192.0.2.1 api.example https://api.example https://api.example":  false,
		"192.0.2.1 api.example https://other.example":                    false,
		"192.0.2.1 api.example null":                                     false,
		"192.0.2.1 api.example ":                                         false,
		"192.0.2.1 api.example https://api.example/":                     false,
		"192.0.2.1 api.example https://user@api.example":                 false,
		"192.0.2.1 api.example ftp://api.example":                        false,
	} {
		parts := strings.Split(request, " ")
		var at net.Addr = &net.UnixAddr{}
		if ip := net.ParseIP(parts[0]); ip != nil {
			at = &net.TCPAddr{IP: ip, Port: 8080}
		}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, at), "POST", "/", nil)
		if r.Host = parts[1]; len(parts) > 2 {
			r.Header["Origin"] = parts[2:]
		}
		storetest.Equal(t, want, originAllowed(r), request)
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
	for _, tt := range []struct {
		after visibility.SourceRow
		want  int
	}{
		{rows[0], 1}, {rows[1], 2}, {rows[2], 3}, {rows[3], 4}, {rows[4], 5},
		{visibility.SourceRow{Host: "z.example", Answers: 9}, 0},
		{visibility.SourceRow{Host: "z.example", Answers: 3}, 1},
		{visibility.SourceRow{Host: "c.example", Page: "c.example/y", Answers: 2}, 4},
		{visibility.SourceRow{Host: "d.example", Answers: 0}, 5},
	} {
		if got := len(rows) - len(rowsAfter(rows, &store.Position{Text: sourcePosition(&tt.after)})); got != tt.want {
			t.Errorf("after %+v: begins at %d, want %d", tt.after, got, tt.want)
		}
	}
}

// TestDateIsItsFirstInstant: a date is its first instant in a time zone. Package visibility tests days on which clocks
// are changed.
func TestDateIsItsFirstInstant(t *testing.T) {
	for sent, want := range map[string]string{
		"Europe/Rome 2026-03-30":                   "2026-03-29T22:00:00.000000Z",
		"Europe/Rome 2026-03-01T10:00:00.0000001z": "2026-03-01T10:00:00.000001Z",
		"Europe/Rome 0001-01-01":                   "",
		"UTC 0001-01-01":                           "0001-01-01T00:00:00.000000Z",
		"America/New_York 9999-12-31":              "9999-12-31T05:00:00.000000Z",
		"UTC 9999-12-31T23:59:59.9999999Z":         "",
		"UTC 2026-02-29":                           "", "UTC 2026-3-1": "", "UTC 2026-03-01T10:00:00": "", "UTC ": "",
	} {
		zone, value, _ := strings.Cut(sent, " ")
		got := ""
		if at, err := moment(value, zoneOf(t, zone)); err == nil {
			got = store.FormatTime(at)
		}
		storetest.Equal(t, want, got, sent)
	}
}

// TestPageWindow: the window of pages may have 92 days, one of which may have 25 hours.
func TestPageWindow(t *testing.T) {
	for sent, want := range map[string]bool{
		"UTC 2026-01-01 2026-04-03":                  false,
		"UTC 2026-01-01 2026-04-03T00:00:00.000001Z": true,
		"UTC 2026-08-01 2026-11-01T01:00:00Z":        true,
		"Europe/Rome 2026-08-01 2026-11-01":          false,
		"Europe/Rome 2026-08-01 2026-11-02":          true,
	} {
		parts := strings.Fields(sent)
		w := window{zone: zoneOf(t, parts[0]), times: map[string]string{"from": parts[1], "to": parts[2]}}
		var faults problem.Faults
		if from, to := w.span("from", "to", &faults); w.isWide(from, to) != want || faults != nil {
			t.Errorf("%s: got %v; %v", sent, !want, faults)
		}
	}
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := schedules.LoadZone(name)
	must(t, err)
	return zone
}
