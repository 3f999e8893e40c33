package httpserver

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A Certificate serves a certificate and its key from files. It reads them again during handshakes, at most once a
// second, so that a renewed certificate needs no restart. If that fails, it serves the previous pair.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate // never nil after NewCertificate
	read     time.Time        // when the files were read
	reported string           // what is wrong and was logged
}

// NewCertificate reads the pair. An error means that it cannot be used.
func NewCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.refresh(); err != nil {
		return nil, err
	}
	c.report(nil)
	return c, nil
}

// Config returns a TLS configuration that always serves the newest pair.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.newest(), nil
		},
	}
}

// newest returns the pair to serve. All handshakes wait while one of them reads the files.
func (c *Certificate) newest() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.read) > time.Second {
		c.report(c.refresh())
	}
	return c.current
}

// refresh reads the files. c.mu is locked, or c is not in use yet.
func (c *Certificate) refresh() error {
	c.read = time.Now()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil {
		c.current = &pair
	}
	return err
}

// report logs once why the files cannot be read, and that clients reject the current certificate because of its dates.
// Such a certificate is still served, because the clock may be wrong.
func (c *Certificate) report(err error) {
	var wrong []string
	if err != nil {
		wrong = append(wrong, "reading the certificate failed; serving the previous one: "+err.Error())
	}
	leaf := c.current.Leaf
	switch now := time.Now(); {
	case now.After(leaf.NotAfter):
		wrong = append(wrong, "the certificate expired at "+leaf.NotAfter.Format(time.RFC3339)+"; clients reject it")
	case now.Before(leaf.NotBefore):
		wrong = append(wrong, "the certificate is not valid before "+leaf.NotBefore.Format(time.RFC3339)+"; clients reject it")
	}
	text := strings.Join(wrong, "; ")
	// A fault that lasts is logged once; another one, or the same after a success, is logged again.
	if text != "" && text != c.reported {
		c.log.Warn(text, "file", c.certFile)
	}
	c.reported = text
}
