package engines

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

func location(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", strings.ReplaceAll(to, "ORIGIN", "http://"+r.Host))
		w.WriteHeader(status)
	}
}

// TestLinksAreRequestedOnce: with the flag, each link is requested once. Nothing is requested where it leads, and what is
// no redirection to a page stays as without the flag.
func TestLinksAreRequestedOnce(t *testing.T) {
	t.Parallel()
	links := map[string]http.HandlerFunc{
		"302": location(302, "https://kovalt.com/shoes?a=1"), "200": enginestest.Answer(200, "<html>"), "404": enginestest.Answer(404, ""),
		"loop": location(301, "ORIGIN/grounding-api-redirect/loop"), "relative": location(302, "/shoes"),
		"script": location(302, "javascript:1"), "titled": location(303, "http://kovalt.example/a"),
	}
	var requests atomic.Int32
	api, mux := enginestest.New(t, "gemini"), http.NewServeMux()
	mux.Handle("/v1beta/", api)
	mux.HandleFunc(linkPath+"{link}", func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if !r.Close { // else package http repeats a request if the server closes a connection that was used before
			t.Error("the connection of a link may be used again")
		}
		for name := range r.Header {
			if name != "User-Agent" && name != "Accept-Encoding" && name != "Connection" {
				t.Errorf("a link is requested with the header %s", name)
			}
		}
		links[r.PathValue("link")](w, r)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	origin := strings.NewReplacer("ORIGIN", server.URL+"/grounding-api-redirect")
	api.Then(enginestest.Answer(200, origin.Replace(`{"candidates":[{"content":{"parts":[{"text":"A"}]},
 "groundingMetadata":{"groundingChunks":[
 {"web":{"uri":"ORIGIN/302","title":"kovalt.com"}}, {"web":{"uri":"ORIGIN/200","title":"ostrel.com"}},
 {"web":{"uri":"ORIGIN/302","title":"kovalt.com"}}, {"web":{"uri":"ORIGIN/404","title":"Shoes of 2026"}},
 {"web":{"uri":"ORIGIN/loop","title":"kovalt.org"}}, {"web":{"uri":"ORIGIN/relative","title":"kovalt.net"}},
 {"web":{"uri":"ORIGIN/script","title":"kovalt.info"}}, {"web":{"uri":"ORIGIN/titled","title":"Kovalt. Shoes"}},
 {"web":{"uri":"https://other.example/grounding-api-redirect/x","title":"kovalt.de"}}]}}]}`)))
	want := origin.Replace(`"citations":[{"url":"https://kovalt.com/shoes?a=1","title":null},{"url":"https://ostrel.com/","title":null},` +
		`{"url":"ORIGIN/404","title":"Shoes of 2026"},{"url":"ORIGIN/loop","title":null},{"url":"https://kovalt.net/","title":null},` +
		`{"url":"https://kovalt.info/","title":null},{"url":"http://kovalt.example/a","title":"Kovalt. Shoes"},` +
		`{"url":"https://other.example/grounding-api-redirect/x","title":"kovalt.de"}]`)
	x := newTest(t, "gemini", server.URL+"/v1beta", func(c *Config) { c.ResolveLinks = true })
	if got, _ := outcome(t, x, testJob("m", true)); !strings.Contains(got, want) || requests.Load() != 7 {
		t.Errorf("%d requests:\n got %s\nwant %s", requests.Load(), got, want)
	}
}
