package gateway_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"aiv/gateway"
)

// TestQueryIsJudgedAfterTheScope: the faults of a query string are not reported before the route, the entitlement and
// the scope have been checked.
func TestQueryIsJudgedAfterTheScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	for _, test := range []struct{ key, method, target, body, code string }{
		{"reader", "GET", "/v1/alerts?x=%zz", "", "insufficient_scope"},
		{"reader", "GET", "/v1/alerts?a=1;b", "", "insufficient_scope"},
		{"reader", "GET", "/v1/alerts?" + strings.Repeat("a&", 40), "", "insufficient_scope"},
		{"reader", "GET", "?path=/v1/alerts%3Flimit=1&limit=2", "", "insufficient_scope"},
		{"reader", "POST", "?x=%zz", `{"path":"/v1/runs","method":"POST","body":{}}`, "insufficient_scope"},
		{"reader", "POST", "", `{"path":"/v1/runs?x=%zz","method":"POST","body":{}}`, "insufficient_scope"},
		{"no_access", "GET", "/v1/runs?x=%zz", "", "entitlement_required"},
		{"full", "GET", "?path=/v1/nope%3Flimit=1&limit=1", "", "route_not_found"},
		{"full", "POST", "?x=%zz", `{"path":"/v1/nope","method":"POST","body":{}}`, "route_not_found"},
		{"full", "POST", "?x=%zz", `{"path":"/v1/runs","method":"POST","body":{}}`, "invalid_parameter"},
		{"full", "POST", "", `{"path":"/v1/runs?x=%zz","method":"POST","body":{}}`, "invalid_parameter"},
		{"full", "GET", "?x=%zz", "", "invalid_parameter"},
	} {
		r := httptest.NewRequest(test.method, gateway.Base+test.target, strings.NewReader(test.body))
		r.Header.Set("Authorization", "Bearer "+f.keys[test.key])
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), `"code":"`+test.code+`"`) {
			t.Errorf("%s %s %s: got %s, want %s", test.method, test.target, test.body, w.Body, test.code)
		}
	}
}
