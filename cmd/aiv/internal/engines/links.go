package engines

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"aiv/insights/brands/match"
)

// Gemini cites pages by addresses of Google that redirect. Google's terms limit what a program may do with them
// (OPERATING.md), so they are requested only if the operator decided that; otherwise a citation is the site that its
// title names.

const (
	// The redirecting links of Google begin with these.
	linkOrigin = "https://vertexaisearch.cloud.google.com"
	linkPath   = "/grounding-api-redirect/"

	linksAtATime = 4
	linkTime     = 5 * time.Second  // for each
	linksTime    = 20 * time.Second // for an answer
)

// newLinkTransport uses each connection once: package http repeats a GET if the server closes a connection that was used
// before.
func newLinkTransport() *http.Transport {
	t := newTransport(0)
	t.DisableKeepAlives = true
	return t
}

// nameLinks replaces the redirecting links among the citations. Without a target, the citation becomes the site of the
// title if that is a host name; else the link stays.
func (x *Executor) nameLinks(ctx context.Context, citations []citation) {
	targets := make(map[string]string) // by link
	if x.cfg.ResolveLinks {
		targets = x.resolve(ctx, citations)
	}
	for i, c := range citations {
		if !x.isLink(c.url) {
			continue
		}
		named := match.IsHostName(c.title)
		switch target := targets[c.url]; {
		case target != "":
			citations[i].url = target
		case named:
			citations[i].url = "https://" + c.title + "/"
		default:
			continue
		}
		// The title was only the name of the site, so it is no title of the page.
		if named {
			citations[i].title = ""
		}
	}
}

// isLink reports whether an address is a redirecting link of Google, or of the server that the engine sends requests to.
func (x *Executor) isLink(address string) bool {
	return strings.HasPrefix(address, linkOrigin+linkPath) || strings.HasPrefix(address, origin(x.base)+linkPath)
}

// resolve requests each link once, without the key, and returns where those that redirect lead.
func (x *Executor) resolve(ctx context.Context, citations []citation) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, x.linksTime)
	defer cancel()
	var mu sync.Mutex
	targets := make(map[string]string)
	var requests sync.WaitGroup
	slots := make(chan struct{}, linksAtATime)
	for _, c := range citations {
		if x.isLink(c.url) {
			targets[c.url] = ""
		}
	}
	// The loop is over a clone, because the requests write to the map.
	for link := range maps.Clone(targets) {
		requests.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if target := x.target(ctx, link); target != "" {
				mu.Lock()
				defer mu.Unlock()
				targets[link] = target
			}
		})
	}
	requests.Wait()
	return targets
}

// target returns where a link leads, or "". Nothing is requested there.
func (x *Executor) target(ctx context.Context, link string) string {
	ctx, cancel := context.WithTimeout(ctx, x.linkTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return ""
	}
	request.Header.Set("User-Agent", userAgent)
	r, err := x.linkTransport.RoundTrip(request)
	if err != nil {
		return ""
	}
	// Only the header is needed.
	r.Body.Close()
	target, err := url.Parse(r.Header.Get("Location"))
	redirects := r.StatusCode >= 300 && r.StatusCode <= 399
	if err != nil || !redirects || target.Scheme != "http" && target.Scheme != "https" || target.Host == "" {
		return ""
	}
	return r.Header.Get("Location")
}
