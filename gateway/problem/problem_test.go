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
	var f Faults
	for name, want := range map[string]string{
		most: most, most + "n": most + "…", most[1:] + "é": most[1:] + "…",
		strings.Repeat("\x80", 100): "\uFFFD…", "\xff" + most[1:]: "\uFFFD" + most[1:],
	} {
		if f.AddParameter(name, ""); *f[len(f)-1].Parameter != want {
			t.Errorf("%q: got %q, want %q", name, *f[len(f)-1].Parameter, want)
		}
	}
	for range 2 * MaxFaults {
		f.AddUnknown("#", most+"n")
	}
	if got, want := f[MaxFaults-1].Detail, "has an unknown member "+most+"…"; len(f) != MaxFaults || got != want {
		t.Errorf("the last of %d faults is %q, want %q", len(f), got, want)
	}
}
