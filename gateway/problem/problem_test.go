package problem

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProblemIsWritten(t *testing.T) {
	api := API{Reference: "/external-api-v1/docs", Realm: "worker"}
	w := httptest.NewRecorder()
	for _, name := range []string{"ETag", "Location", "Cache-Control"} {
		w.Header()[name] = []string{"of a success"}
	}
	w.Header().Set("X-Request-Id", "req_1")
	p := api.InvalidKey("a < b & c")
	p.Errors.AddUnknown("#", "a/b")
	api.Write(w, p, "req_1")

	const body = `{"type":"/external-api-v1/docs#invalid_api_key","title":"The API key is not valid","status":401,"code":"invalid_api_key",` +
		`"detail":"a < b & c","request_id":"req_1","errors":[{"pointer":"#/a~1b","detail":"unknown member"}]}`
	if diff := cmp.Diff(body, w.Body.String()); w.Code != 401 || diff != "" {
		t.Errorf("status %d, body (-want +got):\n%s", w.Code, diff)
	}
	var headers []string
	for name, values := range w.Header() {
		headers = append(headers, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(headers)
	want := []string{"Cache-Control: no-store", "Content-Length: 221", "Content-Type: application/problem+json",
		`WWW-Authenticate: Bearer realm="worker", error="invalid_token"`, "X-Request-Id: req_1"}
	if diff := cmp.Diff(want, headers); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestStatusCode(t *testing.T) {
	for _, test := range []struct {
		p    Problem
		want int
	}{
		{Problem{Code: RunFinal}, 409},
		{Problem{Code: EntitlementRequired, Check: "api_access"}, 403},
		{Problem{Code: "of_a_check", Check: "check"}, 422},
		{Problem{Code: "unknown"}, 500},
	} {
		if got := test.p.StatusCode(); got != test.want {
			t.Errorf("%+v: got status %d, want %d", test.p, got, test.want)
		}
	}
}

func TestKindsAreOrderedAndUnique(t *testing.T) {
	seen := make(map[string]bool)
	last := 400
	for _, k := range Kinds() {
		if seen[k.Code] || k.Status < last || k.Title == "" {
			t.Errorf("the kind %+v is a duplicate, out of order or has no title", k)
		}
		seen[k.Code], last = true, k.Status
	}
}

// TestLongNames: a long name is cut between characters, also if it is not UTF-8.
func TestLongNames(t *testing.T) {
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
}

// TestFaultsAreBounded: a response does not grow with the names in a request.
func TestFaultsAreBounded(t *testing.T) {
	var f Faults
	for range 2 * MaxFaults {
		f.AddUnknown("#", strings.Repeat("é", 1000))
	}
	if want := (Fault{Pointer: "#", Detail: "has an unknown member " + strings.Repeat("é", 32) + "…"}); len(f) != MaxFaults || f[0] != want {
		t.Errorf("%d faults, the first one %v, want %v", len(f), f[0], want)
	}
}
