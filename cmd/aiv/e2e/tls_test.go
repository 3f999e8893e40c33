package e2e

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestTLS: with a certificate aiv serves HTTP/1.1 over TLS only, also to clients that offer HTTP/2.
func TestTLS(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	other := httptest.NewTLSServer(nil) // whose certificate aiv serves
	t.Cleanup(other.Close)
	pair := other.TLS.Certificates[0]
	private, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"crt": {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, "key": {Type: "PRIVATE KEY", Bytes: private},
	} {
		must(t, os.WriteFile(dir+"/"+name, pem.EncodeToMemory(block), 0o600))
	}
	p := startServe(t, url, "-tls-cert", dir+"/crt", "-tls-key", dir+"/key")
	secure := other.Client()
	secure.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	r, err := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(p.base, "http:", "https:", 1)+"?path=/v1/me", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+key.Key)
	w, err := secure.Do(r)
	must(t, err)
	w.Body.Close()
	if w.StatusCode != 200 || w.Proto != "HTTP/1.1" {
		t.Errorf("got %d by %s", w.StatusCode, w.Proto)
	}
	if a := p.get(t, "?path=/v1/me", key.Key); a.status != 400 {
		t.Errorf("without TLS: got %d %s", a.status, a.body)
	}
	secure.CloseIdleConnections()
	stops(t, p)
}
