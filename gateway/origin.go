package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// originAllowed reports whether the origin of a request is allowed. Programs send no Origin. Browsers send the origin
// of the page, which must be the server's. At a loopback address its host must also be a loopback name: a page whose
// own name was made to resolve to 127.0.0.1 sends that name as both Origin and Host (DNS rebinding).
func originAllowed(r *http.Request) bool {
	sent := r.Header["Origin"]
	if len(sent) == 0 {
		return true
	}
	if len(sent) > 1 {
		return false
	}
	origin := strings.ToLower(sent[0])
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
		return false // also null, and addresses of pages
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port == "" || withPort(u.Host, port) != withPort(strings.ToLower(r.Host), port) {
		return false
	}
	return !atLoopback(r) || isLoopbackName(u.Hostname())
}

// withPort adds the default port to a host without one.
func withPort(host, port string) string {
	if _, given, err := net.SplitHostPort(host); err == nil && given != "" {
		return host
	}
	return strings.TrimSuffix(host, ":") + ":" + port
}

// atLoopback reports whether the connection of a request arrived at a loopback address.
func atLoopback(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.IP.IsLoopback()
}

func isLoopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
