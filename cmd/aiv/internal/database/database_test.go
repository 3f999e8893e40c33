package database

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/cli"
	"aiv/store/storetest"
)

func TestDatabaseFlags(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args  []string
		env   map[string]string
		want  Source
		fault string
	}{
		{nil, nil, Source{}, ""},
		{nil, map[string]string{"AIV_DATA_DIR": "e"}, Source{Dir: "e"}, ""},
		{nil, map[string]string{"AIV_DATA_DIR": "e", "DATABASE_URL": "u"}, Source{URL: "u", Dir: "e"}, ""},
		{[]string{"-database-url", "f"}, map[string]string{"AIV_DATA_DIR": "e", "DATABASE_URL": "u"}, Source{URL: "f"}, ""},
		{[]string{"-data-dir", "f"}, map[string]string{"AIV_DATA_DIR": "e"}, Source{Dir: "f"}, ""},
		{[]string{"-data-dir", "f"}, map[string]string{"DATABASE_URL": "u"}, Source{}, "-data-dir and DATABASE_URL name two databases"},
		{[]string{"-data-dir", "f", "-database-url", "f"}, nil, Source{}, "-data-dir and -database-url name two databases"},
	}
	for _, test := range tests {
		var got Source
		var err error
		var stderr strings.Builder
		p := cli.Program{Stderr: &stderr, Getenv: func(name string) string { return test.env[name] }}
		p.Commands = []cli.Command{{Name: "probe", Run: func(_ context.Context, c *cli.Call) error {
			read := Flags(c)
			if _, err := c.Parse(); err != nil {
				return err
			}
			got, err = read()
			return nil
		}}}
		if code := p.Run(t.Context(), append([]string{"probe"}, test.args...)); code != cli.ExitOK {
			t.Fatal(stderr.String())
		}
		if got != test.want || (err != nil) != (test.fault != "") ||
			err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%v %v: got %+v, %v, want %+v, %q", test.args, test.env, got, err, test.want, test.fault)
		}
	}
}

// TestLocationHasNoPassword: a database is named by its servers or its folder, without the user and the password.
func TestLocationHasNoPassword(t *testing.T) {
	t.Parallel()
	for source, want := range map[Source]string{
		{URL: "postgres://me:sesame@db.internal/aiv"}:                   "database aiv at db.internal:5432",
		{URL: "postgres://me:sesame@db1:5433,[::1]/aiv?sslmode=prefer"}: "database aiv at db1:5433, [::1]:5432",
		{URL: "host=/run/postgresql user=me password=sesame dbname=x"}:  "database x at /run/postgresql:5432",
		{Dir: "/srv/aiv"}: "private PostgreSQL in /srv/aiv",
	} {
		if got := source.Location().String(); got != want {
			t.Errorf("%+v: got %s, want %s", source, got, want)
		}
	}
}

func TestDefaultDir(t *testing.T) {
	used, unused := t.TempDir(), t.TempDir()
	storetest.Must(t, os.Mkdir(filepath.Join(used, "aiv"), 0o700))
	storetest.Must(t, os.WriteFile(filepath.Join(used, "aiv", "aiv-private-postgresql"), nil, 0o600))
	ofUnused, relative := filepath.Join(unused, "aiv"), filepath.Join(unused, ".local", "share", "aiv")
	if os.Geteuid() == 0 {
		ofUnused, relative = "/var/lib/aiv", "/var/lib/aiv"
	}
	for _, test := range []struct{ xdg, home, want string }{
		{used, "/nowhere", filepath.Join(used, "aiv")},
		{unused, "", ofUnused},
		{"relative", unused, relative},
	} {
		t.Setenv("XDG_DATA_HOME", test.xdg)
		t.Setenv("HOME", test.home)
		got, err := DefaultDir()
		storetest.Must(t, err)
		storetest.Equal(t, test.want, got, fmt.Sprintf("%+v", test))
	}
}
