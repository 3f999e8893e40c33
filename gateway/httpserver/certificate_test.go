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

// pair is the files of a certificate and its key, and what is served from them.
type pair struct {
	t         *testing.T
	cert, key string
	log       strings.Builder
	*httpserver.Certificate
}

// newPair writes a certificate that is valid between two times from now, and opens it.
func newPair(t *testing.T, serial int64, begins, ends time.Duration) *pair {
	t.Helper()
	dir := t.TempDir()
	p := &pair{t: t, cert: filepath.Join(dir, "crt"), key: filepath.Join(dir, "key")}
	p.write(serial, begins, ends)
	var err error
	p.Certificate, err = httpserver.NewCertificate(p.cert, p.key, slog.New(slog.NewTextHandler(&p.log, nil)))
	must(t, err)
	return p
}

func (p *pair) write(serial int64, begins, ends time.Duration) {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(p.t, err)
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: now.Add(begins), NotAfter: now.Add(ends)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(p.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(p.t, err)
	must(p.t, os.WriteFile(p.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(p.t, os.WriteFile(p.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// serves checks which certificate a handshake gets.
func (p *pair) serves(step string, serial int64) {
	p.t.Helper()
	served, err := p.Config().GetCertificate(nil)
	must(p.t, err)
	if got := served.Leaf.SerialNumber.Int64(); got != serial {
		p.t.Errorf("%s: certificate %d is served, want %d", step, got, serial)
	}
}

// wait makes handshakes, each after the files may be read again.
func (p *pair) wait(step string, handshakes int, serial int64) {
	p.t.Helper()
	for range handshakes {
		time.Sleep(1100 * time.Millisecond)
		p.serves(step, serial)
	}
}

// TestCertificateIsReloaded replaces and removes the files of a certificate, which are read once a second. Each reason
// why they cannot be read is logged once.
func TestCertificateIsReloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, -time.Hour, time.Hour)
		aside := p.key + ".aside"
		for _, step := range []struct {
			name   string
			change func() error
			serial int64
			lines  int // logged so far
		}{
			{"unchanged", func() error { return nil }, 1, 0},
			{"without the key", func() error { return os.Rename(p.key, aside) }, 1, 1},
			{"with the key again", func() error { return os.Rename(aside, p.key) }, 1, 1},
			{"without the certificate", func() error { return os.Remove(p.cert) }, 1, 2},
			{"with an empty certificate", func() error { return os.WriteFile(p.cert, nil, 0o600) }, 1, 3},
			{"renewed", func() error {
				p.write(2, -time.Hour, time.Hour)
				p.serves("renewed within the second", 1)
				return nil
			}, 2, 3},
			{"without the key of the second pair", func() error { return os.Remove(p.key) }, 2, 4},
		} {
			must(t, step.change())
			p.wait(step.name, 2, step.serial)
			if got := strings.Count(p.log.String(), "serving the previous one"); got != step.lines {
				t.Errorf("%s: %d lines are logged, want %d:\n%s", step.name, got, step.lines, p.log.String())
			}
		}
	})
}

// TestCertificateDates: a certificate that clients reject because of its dates is logged once: at the start, when it is
// read again, when it expires, and also while its files cannot be read.
func TestCertificateDates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 1, -2*time.Hour, -time.Hour)
		for i, step := range []struct {
			begins, ends time.Duration // from now
			want         string        // what clients reject; %s: begins or ends
		}{
			{-2 * time.Hour, -time.Hour, "the certificate expired at %s"},
			{-time.Hour, time.Hour, ""},
			{-time.Hour, 2 * time.Second, "the certificate expired at %s"},
			{-time.Hour, -time.Minute, "the certificate expired at %s"},
			{time.Hour, 2 * time.Hour, "the certificate is not valid before %s"},
		} {
			date := time.Now().Add(step.ends)
			if step.begins > 0 {
				date = time.Now().Add(step.begins)
			}
			if i > 0 {
				p.log.Reset()
				p.write(1, step.begins, step.ends)
			}
			p.wait(step.want, 4, 1)
			want := strings.Replace(step.want, "%s", date.UTC().Format(time.RFC3339), 1)
			if want != "" {
				want = "level=WARN msg=\"" + want + "; clients reject it\" file=" + p.cert + "\n"
			}
			if _, got, _ := strings.Cut(p.log.String(), " "); got != want {
				t.Errorf("valid from %v to %v: logged %q, want %q", step.begins, step.ends, got, want)
			}
		}
		p.write(1, -time.Hour, 3*time.Second)
		p.wait("before it expires", 1, 1)
		must(t, os.Remove(p.key))
		p.log.Reset()
		p.wait("without the key until it expires", 6, 1)
		got := strings.Split(p.log.String(), "\n")
		if len(got) != 3 || strings.Contains(got[0], "expired") || !strings.Contains(got[1], "expired") {
			t.Errorf("without the key until the certificate expires: logged %q", got)
		}
	})
}
