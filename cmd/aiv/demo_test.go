package main

import (
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
	var l [3]net.Listener
	var ports [3]any
	for i, addr := range []string{"0.0.0.0:0", ":0", "127.0.0.1:0"} {
		var err error
		if l[i], err = service.Listen(t.Context(), addr); err != nil {
			t.Fatal(err)
		}
		defer l[i].Close()
		ports[i] = l[i].Addr().(*net.TCPAddr).Port
	}
	var text strings.Builder
	must(t, writeInstructions(&text, service.Listeners{Main: l[0], Admin: l[1]}, service.Listeners{Main: l[2]}, false, demo.Service{}))
	want := fmt.Sprintf(`(?s)http://127\.0\.0\.1:%d/external-api-v1\n.* -url http://127\.0\.0\.1:%[3]d `, ports[:]...)
	if !regexp.MustCompile(want).MatchString(text.String()) || !strings.Contains(text.String(), fmt.Sprintf("http://127.0.0.1:%d ", ports[1])) ||
		strings.Contains(text.String(), "0.0.0.0") || strings.Contains(text.String(), "[::]") {
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
	for _, test := range []struct {
		args  []string
		env   map[string]string
		code  int
		fault string
	}{
		{[]string{"-data-dir", absent}, map[string]string{"DATABASE_URL": url}, 2, "aiv demo never writes to another database"},
		{[]string{"-data-dir", absent, "-database-url", url}, nil, 2, "aiv demo never writes to another database"},
		{[]string{"-data-dir", operators}, nil, 1, "aiv demo uses only a folder that it made itself"},
		{nil, map[string]string{"AIV_DATA_DIR": operators}, 1, "aiv demo uses only a folder that it made itself"},
	} {
		var stdout, stderr strings.Builder
		code := testProgram(&stdout, &stderr, test.env).Run(t.Context(), append([]string{"demo"}, test.args...))
		if code != test.code || stdout.String() != "" || !strings.Contains(stderr.String(), test.fault) {
			t.Errorf("aiv demo %v with %v: exit %d, %q, %q; want exit %d, %q", test.args, test.env, code, &stdout, &stderr, test.code, test.fault)
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
