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
	modified [2]time.Time
	failed   [2]time.Time // like modified, of the pair whose failure is logged
	checked  time.Time
}

// NewCertificate reads the pair. An error means that it cannot be used.
func NewCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
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

func (c *Certificate) newest() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) > time.Second {
		c.checked = time.Now()
		if now, err := c.times(); err == nil && now != c.modified {
			// It is tried each time, because permissions may change without a change of the file.
			if err := c.read(); err != nil && now != c.failed {
				c.failed = now
				c.log.Error("reading the renewed certificate failed; serving the previous one", "error", err)
			}
		}
	}
	return c.current
}

func (c *Certificate) read() error {
	times, err := c.times()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.modified = &pair, times
	return nil
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
