package gateway_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"aiv/gateway"
	"aiv/store"
)

// TestEmptyBody: an empty body is no body, whether its length is announced or it is chunked.
func TestEmptyBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	webhook, cancel := "/v1/webhooks/"+store.NewID().Text("wh"), "/v1/runs/"+store.NewID().Text("run")+"/cancel"
	for _, test := range []struct{ method, path, mediaType, body, want string }{
		{"DELETE", webhook, "", "", `"code":"webhook_not_found"`},
		{"DELETE", webhook, "application/json", "", `"code":"webhook_not_found"`},
		{"DELETE", webhook, "application/json", "{}", `"code":"webhook_not_found"`},
		{"DELETE", webhook, "application/json", `{"force":true}`, `"code":"invalid_request"`},
		{"DELETE", webhook, "", "{}", `"detail":"Send the body as Content-Type: application/json, in UTF-8."`},
		{"POST", "", "application/json", `{"path":"` + webhook + `","method":"DELETE","body":{}}`, `"code":"webhook_not_found"`},
		{"POST", "", "application/json", `{"path":"` + webhook + `","method":"DELETE","body":{"force":true}}`, `"code":"invalid_request"`},
		{"POST", cancel, "", "", `"detail":"The request has no body. Send one as Content-Type: application/json; send {} if the route takes no members."`},
		{"POST", cancel, "", "{}", `"detail":"Send the body as Content-Type: application/json, in UTF-8."`},
		{"POST", cancel, "application/json", "", `"code":"invalid_json"`},
		{"POST", cancel, "application/json", "{}", `"code":"run_not_found"`},
	} {
		for _, chunked := range []bool{false, true} {
			r := httptest.NewRequest(test.method, gateway.Base+test.path, strings.NewReader(test.body))
			if chunked {
				r.ContentLength = -1
			}
			r.Header.Set("Authorization", "Bearer "+f.keys["full"])
			if test.mediaType != "" {
				r.Header.Set("Content-Type", test.mediaType)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%s %s, %q as %q, chunked: %t: got %d %s, want %s", test.method, test.path, test.body, test.mediaType, chunked, w.Code, w.Body, test.want)
			}
		}
	}
}
