package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"aiv/gateway"
)

// TestLinksHaveTheFormOfTheRequest: the link to the next page, also of a cached page of models, has the form of address
// that the request has.
func TestLinksHaveTheFormOfTheRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	for _, path := range []string{"/v1/catalog/models", "/v1/catalog/questions"} {
		for _, test := range []struct{ address, link string }{
			{gateway.Base + path + "?limit=1", "<" + gateway.Base + path + "?limit=1&cursor="},
			{gateway.Base + "?path=" + path + "&limit=1", "<" + gateway.Base + "?path=" + path + "&limit=1&cursor="},
		} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, test.address, nil)
			r.Header.Set("Authorization", "Bearer "+f.keys["full"])
			g.ServeHTTP(w, r)
			if link := w.Header().Get("Link"); !strings.HasPrefix(link, test.link) {
				t.Errorf("GET %s: %d, Link %s, want %s…", test.address, w.Code, link, test.link)
			}
		}
	}
}
