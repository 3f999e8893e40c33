package problem

import (
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestProblemDropsHeadersOfASuccess: a handler may have set them before it failed. The golden files show problems.
func TestProblemDropsHeadersOfASuccess(t *testing.T) {
	w := httptest.NewRecorder()
	for _, name := range []string{"ETag", "Link", "Location", "Vary", "Cache-Control"} {
		w.Header()[name] = []string{"of a success"}
	}
	w.Header().Set("X-Request-Id", "req_1")
	API{Realm: "worker"}.Write(w, API{Realm: "worker"}.InvalidKey(""), "req_1")
	want := []string{"Cache-Control", "Content-Length", "Content-Type", "WWW-Authenticate", "X-Request-Id"}
	got := slices.Sorted(maps.Keys(w.Header()))
	if cache := w.Header().Get("Cache-Control"); !slices.Equal(got, want) || cache != "no-store" {
		t.Errorf("the headers %q with Cache-Control: %s", got, cache)
	}
}

// TestFaultsAreBounded: a response does not grow with the names in a request, which are cut between characters.
func TestFaultsAreBounded(t *testing.T) {
	most := strings.Repeat("n", 64)
	for name, want := range map[string][2]string{
		most:                             {most, "unknown member"},
		most + "n":                       {most + "…", "has an unknown member " + most + "…"},
		most[1:] + "é":                   {most[1:] + "…", "has an unknown member " + most[1:] + "…"},
		strings.Repeat("\x80", 100):      {"\uFFFD…", "has an unknown member \uFFFD…"},
		"\xff" + strings.Repeat("n", 63): {"\uFFFD" + strings.Repeat("n", 63), "unknown member"},
	} {
		var f Faults
		f.AddParameter(name, "")
		f.AddUnknown("#", name)
		if *f[0].Parameter != want[0] || f[1].Detail != want[1] {
			t.Errorf("%q: got %q and %q, want %q", name, *f[0].Parameter, f[1].Detail, want)
		}
	}
	var f Faults
	for range 2 * MaxFaults {
		f.AddUnknown("#", most)
	}
	if len(f) != MaxFaults {
		t.Errorf("a request with many faults has %d", len(f))
	}
}
