package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestTLS: with a certificate aiv serves HTTP/1.1 over TLS only, also to clients that offer HTTP/2, and serves a
// renewed certificate from the next connection on.
func TestTLS(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	dir := t.TempDir()
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, dir, 1))
	p := startServe(t, url, "-tls-cert", dir+"/crt", "-tls-key", dir+"/key")
	serial := func() int64 {
		secure := &http.Client{Timeout: patience, Transport: &http.Transport{
			ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
		}}
		defer secure.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(p.base, "http:", "https:", 1)+"?path=/v1/me", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+key.Key)
		w, err := secure.Do(r)
		must(t, err)
		defer w.Body.Close()
		if w.StatusCode != 200 || w.Proto != "HTTP/1.1" {
			t.Errorf("got %d by %s", w.StatusCode, w.Proto)
		}
		return w.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("got certificate %d", got)
	}
	if a := p.get(t, "?path=/v1/me", key.Key); a.status != 400 {
		t.Errorf("without TLS: got %d %s", a.status, a.body)
	}
	roots.AddCert(certificate(t, dir, 2))
	storetest.Eventually(t, "the renewed certificate is served", func() bool { return serial() == 2 })
	stops(t, p)
}

// certificate writes a certificate and its key into a folder.
func certificate(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for name, block := range map[string]*pem.Block{"crt": {Type: "CERTIFICATE", Bytes: der}, "key": {Type: "PRIVATE KEY", Bytes: private}} {
		must(t, os.WriteFile(dir+"/"+name, pem.EncodeToMemory(block), 0o600))
	}
	made, err := x509.ParseCertificate(der)
	must(t, err)
	return made
}
