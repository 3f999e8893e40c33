package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"aiv/store/storetest"
)

// Each command starts the private PostgreSQL and, as its last user, stops it; the data stay. Only migrate creates it.
func TestPrivateDatabase(t *testing.T) {
	t.Parallel()
	base, err := storetest.MkdirTemp("aiv-cli-test-") // the account that the server runs as can't enter t.TempDir's
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	must(t, os.Chmod(base, 0o755))
	dir := filepath.Join(base, "data")
	s := &story{env: map[string]string{"AIV_DATA_DIR": dir}}
	missing := "there is no private PostgreSQL in " + dir +
		"; set DATABASE_URL to use another database, or run `aiv migrate` to create it"
	for _, line := range []string{"plans list", "migrate -status", "verify"} {
		s.prints(t, line, failure(missing))
	}
	if code, _, stderr := aiv(t.Context(), "status", "-data-dir", dir); code != 1 || stderr != "aiv: not ready: "+missing+"\n" {
		t.Errorf("status: exit %d, %s", code, stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was created", dir)
	}
	if code, _, stderr := aiv(t.Context(), "migrate", "-data-dir", dir); code != 0 {
		t.Fatal(stderr)
	}
	s.newAccount(t)
	s.prints(t, "accounts set-plan {acct1} p", "Account {acct1}, \"A\", is now on plan p.\n")
}

func TestInterruptedCommandSaysSo(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	ctx, cancel := context.WithCancel(t.Context())
	stdin, input := io.Pipe()
	defer input.Close()
	go func() {
		io.WriteString(input, sampleCatalog)
		io.WriteString(input, "\n") // returns when the import has read the catalog, and so waits for more
		cancel()
	}()
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"catalog", "import", "-", "-database-url", url}, stdin, &stdout, &stderr)
	if code != 1 || stderr.String() != "aiv: interrupted\n" {
		t.Errorf("an import from stdin: exit %d, stderr %q", code, stderr.String())
	}
}

// TestDatabaseWithoutUTF8: every command refuses a database that cannot store every text, and says what to do.
func TestDatabaseWithoutUTF8(t *testing.T) {
	t.Parallel()
	admin := connect(t, storetest.Empty(t))
	name := admin.Config().ConnConfig.Database + "_latin1"
	storetest.Exec(t, admin, "CREATE DATABASE "+name+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	t.Cleanup(func() { admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)") })
	url := strings.Replace(admin.Config().ConnString(), "/"+admin.Config().ConnConfig.Database, "/"+name, 1)
	for _, line := range []string{"migrate", "serve -migrate", "dispatch", "catalog import -", "status"} {
		prints{line, 1, `aiv: .*the encoding of database "` + name + `" is LATIN1, and aiv requires UTF8; ` +
			"create another database with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that one\n$"}.expect(t, url)
	}
}

// TestLostConnectionIsUncertain: an import whose connection was lost, perhaps after COMMIT, does not say that nothing was
// imported. One that was refused does.
func TestLostConnectionIsUncertain(t *testing.T) {
	t.Parallel()
	_, notConnected := pgconn.Connect(t.Context(), "postgres://127.0.0.1:1/aiv")
	for err, lost := range map[error]bool{
		errors.New("conn closed"): true, fmt.Errorf("commit: %w", io.ErrUnexpectedEOF): true,
		&pgconn.PgError{Code: "57P01", Message: "terminating connection"}: false, notConnected: false, context.Canceled: false,
		errors.New("line 1: kind must be one of recommendation, alert"): false,
	} {
		got := uncertain(notImported(err)).Error()
		if strings.Contains(got, "aiv audit list") != lost || strings.Contains(got, "nothing was imported") == lost {
			t.Errorf("%v: %s", err, got)
		}
	}
}
