package gateway

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOriginAllowed(t *testing.T) {
	loopback, other := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8080}
	for _, test := range []struct {
		at     net.Addr
		host   string
		origin []string
		want   bool
	}{
		{loopback, "evil.example", nil, true}, // a reverse proxy
		{loopback, "localhost:8080", []string{"http://localhost:8080"}, true},
		{loopback, "LOCALHOST:8080", []string{"http://LocalHost:8080"}, true},
		{loopback, "127.0.0.1:8080", []string{"http://127.0.0.1:8080"}, true},
		{loopback, "127.8.9.1:8080", []string{"http://127.8.9.1:8080"}, true},
		{loopback, "[::1]:8080", []string{"http://[::1]:8080"}, true},
		{loopback, "[::1]", []string{"http://[::1]:80"}, true},
		{loopback, "localhost", []string{"http://localhost:80"}, true},
		{loopback, "localhost:443", []string{"https://localhost"}, true},
		{loopback, "localhost:80", []string{"https://localhost"}, false},
		{loopback, "evil.example:8080", []string{"http://evil.example:8080"}, false}, // DNS rebinding
		{loopback, "localhost.evil.example:8080", []string{"http://localhost.evil.example:8080"}, false},
		{loopback, "localhost:8080", []string{"http://localhost:8081"}, false},
		{loopback, "localhost:8080", []string{"http://127.0.0.1:8080"}, false},
		{other, "api.example", []string{"https://api.example"}, true},
		{other, "api.example:443", []string{"https://api.example"}, true},
		{other, "api.example", []string{"https://other.example"}, false},
		{other, "api.example", []string{"null"}, false},
		{other, "api.example", []string{""}, false},
		{other, "api.example", []string{"https://api.example/"}, false},
		{other, "api.example", []string{"https://user@api.example"}, false},
		{other, "api.example", []string{"https://api.example?x"}, false},
		{other, "api.example", []string{"ftp://api.example"}, false},
		{other, "api.example", []string{"api.example"}, false},
		{other, "api.example", []string{"https://api.example", "https://api.example"}, false},
		{&net.UnixAddr{}, "api.example", []string{"https://api.example"}, true},
	} {
		r := httptest.NewRequest("POST", "/", nil).WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, test.at))
		r.Host = test.host
		r.Header["Origin"] = test.origin
		if test.origin == nil {
			delete(r.Header, "Origin")
		}
		if got := originAllowed(r); got != test.want {
			t.Errorf("Origin %q at %v with Host %s: got %v, want %v", test.origin, test.at, test.host, got, test.want)
		}
	}
}
