package httpserver

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A Certificate serves a certificate and its key from files. It reads them again when either has changed, so that a renewed
// certificate needs no restart. If that fails, it serves the previous pair.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time // of the files of current
	checked  time.Time
	reported string // why the last check failed; empty if it did not
	warned   bool   // that clients reject current
}

// NewCertificate reads the pair. An error means that it cannot be used.
func NewCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.refresh(); err != nil {
		return nil, err
	}
	c.warnOfDates()
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

// newest checks the files, at most once a second.
func (c *Certificate) newest() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) <= time.Second {
		return c.current
	}
	c.checked = time.Now()
	reason := ""
	if err := c.refresh(); err != nil {
		if reason = err.Error(); reason != c.reported {
			c.log.Error("reading the certificate failed; serving the previous one", "error", err)
		}
	}
	c.reported = reason
	c.warnOfDates()
	return c.current
}

// refresh reads the files if they have changed since they were read. After an error it reads them again even if they have not
// changed, because permissions may change without a change of the file.
func (c *Certificate) refresh() error {
	times, err := c.times()
	if err != nil || times == c.modified {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.modified, c.warned = &pair, times, false
	return nil
}

// warnOfDates logs once that clients reject the current certificate because of its dates. It is still served, because the clock may be
// wrong.
func (c *Certificate) warnOfDates() {
	if c.warned {
		return
	}
	c.warned = true
	leaf := c.current.Leaf
	switch now := time.Now(); {
	case now.After(leaf.NotAfter):
		c.log.Warn("the certificate has expired; clients reject it", "file", c.certFile, "not_after", leaf.NotAfter)
	case now.Before(leaf.NotBefore):
		c.log.Warn("the certificate is not valid yet; clients reject it", "file", c.certFile, "not_before", leaf.NotBefore)
	default:
		c.warned = false
	}
}

func (c *Certificate) times() (times [2]time.Time, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return times, err
		}
		times[i] = info.ModTime()
	}
	return times, nil
}
