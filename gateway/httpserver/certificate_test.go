package httpserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCertificateIsReloaded replaces and removes the files of a certificate, which are read once a second. That they
// cannot be read, and that clients reject the certificate because of its dates, is logged once. Connections with HTTP/2,
// which would carry any number of requests, are not offered.
func TestCertificateIsReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
		// write returns a function that writes a certificate that is valid between two times from now, and its key.
		write := func(serial int64, begins, ends time.Duration) func() {
			return func() {
				key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
				must(t, err)
				now := time.Now()
				template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: now.Add(begins), NotAfter: now.Add(ends)}
				der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
				must(t, err)
				private, err := x509.MarshalPKCS8PrivateKey(key)
				must(t, err)
				must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
				must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
			}
		}
		remove := func(file string) func() { return func() { must(t, os.Remove(file)) } }
		var log strings.Builder
		write(1, -2*time.Hour, -time.Hour)()
		c, err := NewCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
		must(t, err)
		for _, step := range []struct {
			name   string
			change func()
			serial int64
			logged string // part of the only line; "": none
		}{
			{"expired at the start", func() {}, 1, "the certificate expired at"},
			{"renewed", write(2, -time.Hour, time.Hour), 2, ""},
			{"without the key", remove(keyFile), 2, "serving the previous one"},
			{"with another key", write(3, -time.Hour, time.Hour), 3, ""},
			{"without the certificate", remove(certFile), 3, "serving the previous one"},
			{"not yet valid", write(4, time.Hour, 2*time.Hour), 4, "the certificate is not valid before"},
			{"expires", write(5, -time.Hour, 2*time.Second), 5, "the certificate expired at"},
		} {
			step.change()
			for range 4 {
				time.Sleep(1100 * time.Millisecond) // until the files may be read again
				served, err := c.Config().GetCertificate(nil)
				must(t, err)
				if got := served.Leaf.SerialNumber.Int64(); got != step.serial {
					t.Errorf("%s: certificate %d is served, want %d", step.name, got, step.serial)
				}
			}
			lines := strings.Count(log.String(), "\n")
			if lines > 1 || (lines == 1) != (step.logged != "") || !strings.Contains(log.String(), step.logged) {
				t.Errorf("%s: logged %q, want one line with %q", step.name, log.String(), step.logged)
			}
			log.Reset()
		}
		client, server := net.Pipe()
		s := newServer(nil)
		s.TLSConfig = c.Config()
		run(t, s, server)
		conn := tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
		must(t, conn.Handshake())
		if protocol := conn.ConnectionState().NegotiatedProtocol; protocol != "http/1.1" {
			t.Errorf("got protocol %q", protocol)
		}
		client.Close()
	})
}
