package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
