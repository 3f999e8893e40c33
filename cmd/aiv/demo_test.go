package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/demo"
	"aiv/cmd/aiv/internal/service"
	"aiv/store/schema"
)

// TestDemoAddresses: the printed commands connect to a service that listens at all addresses.
func TestDemoAddresses(t *testing.T) {
	t.Parallel()
	listen := func(addr string) (l net.Listener, url string) {
		l, err := service.Listen(t.Context(), addr)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		return l, fmt.Sprintf(`http://127\.0\.0\.1:%d`, l.Addr().(*net.TCPAddr).Port)
	}
	public, publicURL := listen("0.0.0.0:0")
	admin, adminURL := listen(":0")
	workers, workersURL := listen("127.0.0.1:0")
	var text strings.Builder
	must(t, writeInstructions(&text, service.Listeners{Main: public, Admin: admin}, service.Listeners{Main: workers},
		false, demo.Service{}))
	for _, want := range []string{publicURL + "/external-api-v1\n", adminURL + " ", " -url " + workersURL + " "} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("no %s in %s", want, &text)
		}
	}
	if strings.Contains(text.String(), "0.0.0.0") || strings.Contains(text.String(), "[::]") {
		t.Error(&text)
	}
}

// TestDemoRefuses: aiv demo writes neither to a database that is named nor to a folder that it did not make.
func TestDemoRefuses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	operators := filepath.Join(base, "operators")
	must(t, os.MkdirAll(filepath.Join(operators, "pg"), 0o755))
	absent := filepath.Join(base, "absent")
	const url = "postgres://aiv@127.0.0.1:1/aiv"
	const another, foreign = "aiv demo never writes to another database", "aiv demo uses only a folder that it made itself"
	for _, test := range []struct {
		line  string
		env   map[string]string
		code  int
		fault string
	}{
		{"demo -data-dir " + absent, map[string]string{"DATABASE_URL": url}, 2, another},
		{"demo -data-dir " + absent + " -database-url " + url, nil, 2, another},
		{"demo -data-dir " + operators, nil, 1, foreign},
		{"demo", map[string]string{"AIV_DATA_DIR": operators}, 1, foreign},
	} {
		var stdout, stderr strings.Builder
		code := testProgram(&stdout, &stderr, test.env).Run(t.Context(), words(test.line))
		if code != test.code || stdout.String() != "" || !strings.Contains(stderr.String(), test.fault) {
			t.Errorf("aiv %s with %v: exit %d, %q, %q; want exit %d, %q", test.line, test.env, code, &stdout, &stderr,
				test.code, test.fault)
		}
	}
	if _, err := os.Lstat(absent); err == nil {
		t.Error("a refused start made its folder")
	}
	if entries, err := os.ReadDir(operators); err != nil || len(entries) != 1 {
		t.Errorf("a refused start changed the operator's folder: %v (%v)", entries, err)
	}
}

// TestDemoOfAnotherVersion: what cannot be upgraded is sample data in a folder that may be deleted.
func TestDemoOfAnotherVersion(t *testing.T) {
	t.Parallel()
	const advice = ", delete the sample data in /demo, or choose another folder with -data-dir"
	if got := adviseOnFolder(&schema.ChangedError{}, "/demo/postgresql").Error(); !strings.HasSuffix(got, "; use another database"+advice) {
		t.Errorf("got %q, want %q at its end", got, advice)
	}
	other := errors.New("other")
	if got := adviseOnFolder(other, "/demo/postgresql"); got != other {
		t.Errorf("got %v, want %v", got, other)
	}
}

// TestDemoEndsWhileItStarts: a demonstration that is asked to end while one of its services is still starting has not
// failed. Another error of a service is reported.
func TestDemoEndsWhileItStarts(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for fault, want := range map[error]error{nil: nil, broken: broken} {
		ctx, end := context.WithCancel(t.Context())
		starting := func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("read the secret: %w", ctx.Err())
		}
		err := runBoth(ctx, starting, func(context.Context) error {
			end()
			return fault
		})
		if !errors.Is(err, want) || errors.Is(err, context.Canceled) {
			t.Errorf("with the error %v of the other service: %v", fault, err)
		}
	}
}
