package engines

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// linkServer is a fake of Gemini whose answers cite links at its own origin.
func linkServer(t *testing.T, links map[string]http.HandlerFunc) (url string, requested func() int32) {
	t.Helper()
	var n atomic.Int32
	api := enginestest.New(t, "gemini")
	mux := http.NewServeMux()
	mux.Handle("/v1beta/", api)
	mux.HandleFunc("/grounding-api-redirect/", func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		for name := range r.Header {
			if name != "User-Agent" && name != "Accept-Encoding" {
				t.Errorf("a link is requested with the header %s", name)
			}
		}
		links[strings.TrimPrefix(r.URL.Path, "/grounding-api-redirect/")](w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	chunk := func(uri, title string) string { return `{"web":{"uri":"` + uri + `","title":"` + title + `"}}` }
	at := server.URL + "/grounding-api-redirect/"
	api.Then(enginestest.Answer(200, ofGemini(`{"content":{"parts":[{"text":"A"}]},"groundingMetadata":{"groundingChunks":[`+strings.Join([]string{
		chunk(at+"302", "kovalt.com"), chunk(at+"200", "ostrel.com"), chunk(at+"302", "kovalt.com"), chunk(at+"404", "Shoes of 2026"), chunk(at+"loop", "kovalt.org"),
		chunk(at+"relative", "kovalt.net"), chunk(at+"script", "kovalt.info"), chunk(at+"titled", "Kovalt. Shoes"), chunk("https://other.example/grounding-api-redirect/x", "kovalt.de"),
	}, ",")+`]}}`)))
	return server.URL + "/v1beta", n.Load
}

func location(status int, to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", strings.ReplaceAll(to, "ORIGIN", "http://"+r.Host))
		w.WriteHeader(status)
	}
}

// TestLinksAreRequestedOnce: without the flag no link is requested, and a title that is a host name is the citation. With it, each
// link is requested once, nothing is requested where it leads, and what is no redirection to a page stays as without
// the flag.
func TestLinksAreRequestedOnce(t *testing.T) {
	t.Parallel()
	links := map[string]http.HandlerFunc{
		"302": location(302, "https://kovalt.com/shoes?a=1"), "200": enginestest.Answer(200, "<html>"), "404": enginestest.Answer(404, ""),
		"loop": location(301, "ORIGIN/grounding-api-redirect/loop"), "relative": location(302, "/shoes"), "script": location(302, "javascript:1"),
		"titled": location(303, "http://kovalt.example/a"),
	}
	for _, test := range []struct {
		resolve  bool
		requests int32
		want     string
	}{
		{false, 0, `"citations":[{"url":"https://kovalt.com/","title":null},{"url":"https://ostrel.com/","title":null},{"url":"ORIGIN/404","title":"Shoes of 2026"},` +
			`{"url":"https://kovalt.org/","title":null},{"url":"https://kovalt.net/","title":null},{"url":"https://kovalt.info/","title":null},{"url":"ORIGIN/titled","title":"Kovalt. Shoes"},` +
			`{"url":"https://other.example/grounding-api-redirect/x","title":"kovalt.de"}]`},
		{true, 7, `"citations":[{"url":"https://kovalt.com/shoes?a=1","title":null},{"url":"https://ostrel.com/","title":null},{"url":"ORIGIN/404","title":"Shoes of 2026"},` +
			`{"url":"ORIGIN/loop","title":null},{"url":"https://kovalt.net/","title":null},{"url":"https://kovalt.info/","title":null},{"url":"http://kovalt.example/a","title":"Kovalt. Shoes"},` +
			`{"url":"https://other.example/grounding-api-redirect/x","title":"kovalt.de"}]`},
	} {
		url, requested := linkServer(t, links)
		got, _ := outcome(t, newTest(t, "gemini", url, func(c *Config) { c.ResolveLinks = test.resolve }), testJob("m", true))
		want := strings.ReplaceAll(test.want, "ORIGIN", strings.TrimSuffix(url, "/v1beta")+"/grounding-api-redirect")
		if !strings.Contains(got, want) || requested() != test.requests {
			t.Errorf("resolve %t, %d requests:\n got %s\nwant %s", test.resolve, requested(), got, want)
		}
	}
}

// TestLinksAtATime: four links are requested at a time.
func TestLinksAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := newTest(t, "gemini", "http://127.0.0.1:1", func(c *Config) { c.ResolveLinks = true })
		x.transport = slow{}
		var found []citation
		for n := range 3 * linksAtATime {
			found = append(found, citation{fmt.Sprint("http://127.0.0.1:1", linkPath, n), ""})
		}
		start := time.Now()
		x.nameLinks(t.Context(), found)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the requests, of which each takes a second, took %v", took)
		}
		for n, c := range found {
			if c.url != fmt.Sprint("https://kovalt.com", linkPath, n) {
				t.Errorf("link %d leads to %s", n, c.url)
			}
		}
	})
}

// A slow transport redirects each request to another host after a second.
type slow struct{}

func (slow) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Second)
	w := httptest.NewRecorder()
	location(302, "https://kovalt.com"+r.URL.Path)(w, r)
	return w.Result(), nil
}
