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
	for _, test := range []struct {
		args     string
		url, dir string // in the environment
		want     Source
		fault    string
	}{
		{"", "", "", Source{}, ""},
		{"", "", "e", Source{Dir: "e"}, ""},
		{"", "u", "e", Source{URL: "u", Dir: "e"}, ""},
		{"-database-url f", "u", "e", Source{URL: "f"}, ""},
		{"-data-dir f", "", "e", Source{Dir: "f"}, ""},
		{"-data-dir f", "u", "", Source{}, "-data-dir and DATABASE_URL name two databases"},
		{"-data-dir f -database-url f", "", "", Source{}, "-data-dir and -database-url name two databases"},
	} {
		env := map[string]string{"DATABASE_URL": test.url, "AIV_DATA_DIR": test.dir}
		var got Source
		var err error
		p := cli.Program{Getenv: func(name string) string { return env[name] }}
		p.Commands = []cli.Command{{Name: "probe", Run: func(_ context.Context, c *cli.Call) error {
			read := Flags(c)
			if _, err := c.Parse(); err != nil {
				return err
			}
			got, err = read()
			return nil
		}}}
		code := p.Run(t.Context(), append([]string{"probe"}, strings.Fields(test.args)...))
		if code != cli.ExitOK || got != test.want || (err != nil) != (test.fault != "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%+v: exit %d, %+v, %v", test, code, got, err)
		}
	}
}

// TestLocationHasNoPassword: a database is named by its servers or its folder, without the user and the password.
func TestLocationHasNoPassword(t *testing.T) {
	for source, want := range map[Source]string{
		{URL: "postgres://me:sesame@db.internal/aiv"}:                   "database aiv at db.internal:5432",
		{URL: "postgres://me:sesame@db1:5433,[::1]/aiv?sslmode=prefer"}: "database aiv at db1:5433, [::1]:5432",
		{URL: "host=/run/postgresql user=me password=sesame dbname=x"}:  "database x at /run/postgresql:5432",
		{Dir: "/srv/aiv"}: "private PostgreSQL in /srv/aiv",
	} {
		storetest.Equal(t, want, source.Location().String(), source)
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
