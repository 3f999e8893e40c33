package gateway_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway"
	"aiv/store"
)

// TestGuessingIsSlow: every 401 is delayed, so that a connection that tries keys gets at most ten responses a second.
func TestGuessingIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 100 * time.Millisecond
		g := gateway.New(gateway.Config{
			Log: slog.New(slog.DiscardHandler), NewID: store.NewID, Delay: delay, Metrics: gateway.NewMetrics(),
		})
		for _, key := range []string{"", "x"} {
			began := time.Now()
			if w := ask(g, key, "GET", "/v1/me", ""); w.Code != http.StatusUnauthorized || time.Since(began) != delay {
				t.Errorf("the key %q: got %d after %v, want 401 after %v", key, w.Code, time.Since(began), delay)
			}
		}
	})
}

// TestPanicIsAnInternalError: a panic is an internal error. Nothing is added to a response that has begun.
func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	g := gateway.New(gateway.Config{ // without Limits
		Log: slog.New(slog.NewJSONHandler(&log, nil)), NewID: store.NewID, Metrics: gateway.NewMetrics(),
	})
	w := ask(g, "aiv_live_00000000000000000000000000000000000000000003GcTia", "GET", "/v1/me", "")
	const want = `"code":"internal_error","detail":"The error was logged`
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), want) {
		t.Errorf("before the response: got %d, %s", w.Code, w.Body)
	}
	begun := &panickingWriter{ResponseRecorder: httptest.NewRecorder()}
	g.ServeHTTP(begun, httptest.NewRequest("GET", gateway.Base+"/docs", nil))
	if begun.writes != 1 {
		t.Errorf("in the response: %d writes, want 1", begun.writes)
	}
	if n := strings.Count(log.String(), "panic: "); n != 2 {
		t.Errorf("%d panics are logged, want 2:\n%s", n, log.String())
	}
}

// panickingWriter is a response whose first write panics.
type panickingWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *panickingWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes == 1 {
		panic("in a write")
	}
	return w.ResponseRecorder.Write(p)
}

// TestQueryIsJudgedAfterTheScope: the faults of a query string are not reported before the route, the entitlement and
// the scope have been checked.
func TestQueryIsJudgedAfterTheScope(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	for _, test := range []struct{ key, method, address, body, code string }{
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
		w := ask(g, f.keys[test.key], test.method, test.address, test.body)
		if !strings.Contains(w.Body.String(), `"code":"`+test.code+`"`) {
			t.Errorf("%s %s %s: got %s, want %s", test.method, test.address, test.body, w.Body, test.code)
		}
	}
}

// TestEmptyBody: an empty body is no body, whether its length is announced or it is chunked.
func TestEmptyBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	webhook, cancel := "/v1/webhooks/"+store.NewID().Text("wh"), "/v1/runs/"+store.NewID().Text("run")+"/cancel"
	inEnvelope := func(body string) string { return `{"path":"` + webhook + `","method":"DELETE","body":` + body + `}` }
	const asJSON = `"detail":"Send the body as Content-Type: application/json, in UTF-8."`
	for _, test := range []struct{ method, path, mediaType, body, want string }{
		{"DELETE", webhook, "", "", `"code":"webhook_not_found"`},
		{"DELETE", webhook, "application/json", "", `"code":"webhook_not_found"`},
		{"DELETE", webhook, "application/json", "{}", `"code":"webhook_not_found"`},
		{"DELETE", webhook, "application/json", `{"force":true}`, `"code":"invalid_request"`},
		{"DELETE", webhook, "", "{}", asJSON},
		{"POST", "", "application/json", inEnvelope(`{}`), `"code":"webhook_not_found"`},
		{"POST", "", "application/json", inEnvelope(`{"force":true}`), `"code":"invalid_request"`},
		{"POST", cancel, "", "", `"detail":"The request has no body. Send one as Content-Type: application/json;`},
		{"POST", cancel, "", "{}", asJSON},
		{"POST", cancel, "application/json", "", `"code":"invalid_json"`},
		{"POST", cancel, "application/json", "{}", `"code":"run_not_found"`},
	} {
		announced := strings.NewReader(test.body)
		for _, body := range []io.Reader{announced, io.MultiReader(strings.NewReader(test.body))} {
			r := httptest.NewRequest(test.method, gateway.Base+test.path, body)
			r.Header.Set("Authorization", "Bearer "+f.keys["full"])
			if test.mediaType != "" {
				r.Header.Set("Content-Type", test.mediaType)
			}
			w := httptest.NewRecorder()
			if g.ServeHTTP(w, r); !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("%+v, announced: %t: got %d %s", test, body == announced, w.Code, w.Body)
			}
		}
	}
}

// TestLinksHaveTheFormOfTheRequest: the link to the next page, also of a cached page of models, has the form of address
// that the request has.
func TestLinksHaveTheFormOfTheRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	for _, address := range []string{"/v1/catalog/models?limit=1", "?path=/v1/catalog/models&limit=1"} {
		link := ask(g, f.keys["full"], "GET", address, "").Header().Get("Link")
		if want := "<" + gateway.Base + address + "&cursor="; !strings.HasPrefix(link, want) {
			t.Errorf("GET %s: got the link %s, want %s…", address, link, want)
		}
	}
}

// TestPagesDoNotShareMemory: the buffer of a page is used for others after the page has been sent, and no longer holds
// a page that is cached.
func TestPagesDoNotShareMemory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	g := f.gateway(io.Discard)
	f.run(t, g, f.keys["full"])
	lists := []string{"/v1/catalog/models", "/v1/runs", "/v1/catalog/questions", "/v1/catalog/models?limit=1", "/v1/alerts"}
	page := func(n int) string { return ask(g, f.keys["full"], "GET", lists[n%len(lists)], "").Body.String() }
	want := make([]string, len(lists))
	for n := range want {
		want[n] = page(n)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 10 * len(lists) {
				if got := page(n); got != want[n%len(lists)] {
					t.Errorf("GET %s: got %s, want %s", lists[n%len(lists)], got, want[n%len(lists)])
				}
			}
		})
	}
	wg.Wait()
}
