package httpserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/httpserver"
)

// TestCertificateIsReloaded replaces and removes the files of a certificate, which are read once a second. Each reason
// why they cannot be read is logged once.
func TestCertificateIsReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
		var log strings.Builder
		writePair(t, certFile, keyFile, 1)
		c, err := httpserver.NewCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
		must(t, err)
		serves := func(step string, serial int64) {
			t.Helper()
			pair, err := c.Config().GetCertificate(nil)
			must(t, err)
			if got := pair.Leaf.SerialNumber.Int64(); got != serial {
				t.Errorf("%s: certificate %d is served, want %d", step, got, serial)
			}
		}
		check := func(step string, serial int64, lines int) {
			t.Helper()
			for range 2 {
				time.Sleep(1100 * time.Millisecond)
				serves(step, serial)
			}
			if got := strings.Count(log.String(), "serving the previous one"); got != lines {
				t.Errorf("%s: %d lines are logged, want %d:\n%s", step, got, lines, log.String())
			}
		}
		aside := keyFile + ".aside"
		check("unchanged", 1, 0)
		must(t, os.Rename(keyFile, aside))
		check("without the key", 1, 1)
		must(t, os.Rename(aside, keyFile))
		check("with the key again", 1, 1)
		must(t, os.Remove(certFile))
		check("without the certificate", 1, 2)
		must(t, os.WriteFile(certFile, nil, 0o600))
		check("with an empty certificate", 1, 3)
		writePair(t, certFile, keyFile, 2)
		serves("renewed within the second", 1)
		check("renewed", 2, 3)
		must(t, os.Remove(keyFile))
		check("without the key of the second pair", 2, 4)
	})
}

// TestCertificateDates: a certificate that clients reject because of its dates is logged once: at the start, when it is
// read again, when it expires, and also while its files cannot be read.
func TestCertificateDates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certFile, keyFile := filepath.Join(dir, "crt"), filepath.Join(dir, "key")
		var log strings.Builder
		var c *httpserver.Certificate
		for _, step := range []struct {
			begins, ends time.Duration // from now
			want         string        // %s: begins or ends
		}{
			{-2 * time.Hour, -time.Hour, "the certificate expired at %s; clients reject it"},
			{-time.Hour, time.Hour, ""},
			{-time.Hour, 2 * time.Second, "the certificate expired at %s; clients reject it"},
			{-time.Hour, -time.Minute, "the certificate expired at %s; clients reject it"},
			{time.Hour, 2 * time.Hour, "the certificate is not valid before %s; clients reject it"},
		} {
			log.Reset()
			time.Sleep(1100 * time.Millisecond)
			begins, ends := time.Now().Add(step.begins), time.Now().Add(step.ends)
			writePairValid(t, certFile, keyFile, 1, begins, ends)
			if c == nil {
				var err error
				c, err = httpserver.NewCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)))
				must(t, err)
			}
			for range 4 {
				c.Config().GetCertificate(nil)
				time.Sleep(1100 * time.Millisecond)
			}
			date := ends
			if step.begins > 0 {
				date = begins
			}
			want := strings.Replace(step.want, "%s", date.UTC().Format(time.RFC3339), 1)
			if want != "" {
				want = "level=WARN msg=\"" + want + "\" file=" + certFile + "\n"
			}
			if _, got, _ := strings.Cut(log.String(), " "); got != want {
				t.Errorf("valid from %v to %v: logged %q, want %q", step.begins, step.ends, got, want)
			}
		}
		writePairValid(t, certFile, keyFile, 1, time.Time{}, time.Now().Add(3*time.Second))
		time.Sleep(1100 * time.Millisecond)
		c.Config().GetCertificate(nil)
		must(t, os.Remove(keyFile))
		log.Reset()
		for range 6 {
			time.Sleep(1100 * time.Millisecond)
			c.Config().GetCertificate(nil)
		}
		got := strings.Split(log.String(), "\n")
		if len(got) != 3 || strings.Contains(got[0], "expired") || !strings.Contains(got[1], "expired") {
			t.Errorf("without the key until the certificate expires: logged %q", got)
		}
	})
}

// writePair writes a valid certificate and its key.
func writePair(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	writePairValid(t, certFile, keyFile, serial, time.Time{}, time.Now().Add(time.Hour))
}

// writePairValid writes a certificate that is valid between two times, and its key.
func writePairValid(t *testing.T, certFile, keyFile string, serial int64, begins, ends time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: begins, NotAfter: ends}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		must(t, os.WriteFile(name, pem.EncodeToMemory(block), 0o600))
	}
}
