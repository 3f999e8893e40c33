package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	url := storetest.Empty(t)
	pool := connect(t, url)
	status, err := schema.ReadStatus(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	at := pool.Config().ConnConfig
	in := fmt.Sprintf("aiv: database %s at %s:%d: ", at.Database, at.Host, at.Port)
	lacks := in + status.Err().Error() + "\n"
	if !strings.Contains(lacks, "run `aiv migrate`") {
		t.Fatalf("%s doesn't say what to do", lacks)
	}
	var applied, rows []string
	const header = "VERSION\tNAME\tSTATE\tAPPLIED\n"
	pendingTable, appliedTable := header, header
	for _, m := range status.Pending {
		row := strings.TrimLeft(m.String()[:4], "0") + "\t" + m.Name
		pendingTable += row + "\tpending\tno\n"
		appliedTable += row + "\tapplied\t2026-01-02T03:04:05Z\n"
		applied = append(applied, "Applied "+m.String()+".\n")
		rows = append(rows, `{"version":`+strings.TrimLeft(m.String()[:4], "0")+`,"name":"`+m.Name+`","state":"applied","applied_at":"{time}"}`)
	}
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	s.run(t, []step{
		{line: "plans list", code: 1, stderr: lacks},
		{line: "catalog export -json", code: 1, stderr: lacks},
		{line: "migrate -status", piped: true, stdout: pendingTable + "\nNot usable by this binary: " + status.Err().Error() + ".\n"},
		{line: "migrate", stdout: strings.Join(applied, "")},
		{line: "migrate", stdout: "The database is up to date.\n"},
		{line: "migrate -json", stdout: `{"applied":[]}` + "\n"},
		{line: "migrate -status -json", stdout: "[" + strings.Join(rows, ",") + "]\n"},
		{line: "plans list", stdout: "There are no plans; create one with aiv plans set.\n"},
	})

	if _, err := pool.Exec(t.Context(), `UPDATE schema_migrations SET applied_at = '2026-01-02T03:04:05.678901Z'`); err != nil {
		t.Fatal(err)
	}
	s.run(t, []step{{line: "migrate -status", piped: true, stdout: appliedTable}})
	if _, err := pool.Exec(t.Context(), `INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'future', '')`); err != nil {
		t.Fatal(err)
	}
	newer := "the database is newer than this binary: it has migration 9999_future; use the newer binary\n"
	rows = append(rows, `{"version":9999,"name":"future","state":"unknown","applied_at":"{time}"}`)
	s.run(t, []step{
		{line: "accounts list", code: 1, stderr: in + newer},
		{line: "migrate", code: 1, stderr: "aiv: " + newer},
		{line: "migrate -status -json", stdout: "[" + strings.Join(rows, ",") + "]\n"},
	})
}

// Each command starts the private PostgreSQL and, as its last user, stops it; the data stay. Only migrate creates it.
func TestPrivateDatabase(t *testing.T) {
	t.Parallel()
	base, err := storetest.MkdirTemp("aiv-cli-test-") // the account that the server runs as can't enter t.TempDir's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "data")
	s := &story{env: map[string]string{"AIV_DATA_DIR": dir}}
	missing := "there is no private PostgreSQL in " + dir + "; set DATABASE_URL to use another database, or run `aiv migrate` to create it\n"
	for _, line := range []string{"plans list", "migrate -status", "verify"} {
		s.run(t, []step{{line: line, code: 1, stderr: "aiv: " + missing}})
	}
	if code, _, stderr := aiv(t.Context(), "status", "-data-dir", dir); code != 1 || stderr != "aiv: not ready: "+missing {
		t.Errorf("status: exit %d, %s", code, stderr)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was created", dir)
	}
	if code, _, stderr := aiv(t.Context(), "migrate", "-data-dir", dir); code != 0 {
		t.Fatal(stderr)
	}
	s.run(t, []step{
		{line: "plans set p -features api_access -json", stdout: `{"code":"p","features":["api_access"],"rate_limit_per_minute":null,"jobs_per_month":null,"max_unfinished_jobs":null}` + "\n"},
		{line: "plans list -json", stdout: `[{"code":"p","features":["api_access"],"rate_limit_per_minute":null,"jobs_per_month":null,"max_unfinished_jobs":null}]` + "\n"},
	})
}

func TestDatabaseOutOfReach(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://me:sesame@127.0.0.1:1/db", "postgres://me:sesame@127.0.0.1:99999/db", "postgres://me:ses ame@127.0.0.1/db",
		"host=127.0.0.1 port=1 user=me password=sesame", "mysql://me:sesame@host/db",
	} {
		code, stdout, stderr := aiv(t.Context(), "plans", "list", "-database-url", url)
		if code != 1 || stdout != "" || !strings.HasPrefix(stderr, "aiv: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "database") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want 1 and one sentence", url, code, stdout, stderr)
		}
		if strings.Contains(stderr, "ses") {
			t.Errorf("%[2]q contains the password of %[1]s", url, stderr)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := aiv(ctx, "plans", "list", "-database-url", storetest.URL(t))
	if code != 1 || stdout != "" || stderr != "aiv: interrupted\n" {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// A keyboard is a reader that nothing but a key wakes.
type keyboard struct {
	waiting func()
	awake   chan struct{}
}

func (k keyboard) Read([]byte) (int, error) {
	k.waiting()
	<-k.awake
	return 0, io.EOF
}

func TestInterruptedAtTheKeyboard(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	stdin := keyboard{waiting: cancel, awake: make(chan struct{})}
	defer close(stdin.awake)
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"catalog", "import", "-", "-database-url", storetest.URL(t)}, stdin, &stdout, &stderr)
	if code != 1 || stderr.String() != "aiv: interrupted\n" {
		t.Errorf("exit %d, stderr %q", code, stderr.String())
	}
}

func TestActor(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	for _, test := range []struct {
		env        map[string]string
		args, want string
	}{
		{map[string]string{"AIV_ACTOR": "env"}, "-actor flag", "flag"},
		{map[string]string{"AIV_ACTOR": "env", "SUDO_USER": "sue"}, "", "env"},
		{map[string]string{"SUDO_USER": "sue"}, "", "sue@"},
		{nil, "", "@"},
	} {
		p := testProgram(&strings.Builder{}, &strings.Builder{}, test.env)
		if code := p.Run(t.Context(), words("plans set p -features x -database-url "+url+" "+test.args)); code != 0 {
			t.Fatal(p.Stderr)
		}
		var actor string
		err := connect(t, url).QueryRow(t.Context(), `SELECT actor FROM audit_log ORDER BY id DESC LIMIT 1`).Scan(&actor)
		if err != nil || !strings.Contains(actor, test.want) || !strings.Contains(test.want, "@") && actor != test.want {
			t.Errorf("%v %s: actor %q (%v), want %q", test.env, test.args, actor, err, test.want)
		}
	}
}

// TestDatabaseWithoutUTF8: every command refuses a database that cannot store every text, and says what to do.
func TestDatabaseWithoutUTF8(t *testing.T) {
	t.Parallel()
	admin := connect(t, storetest.Empty(t))
	name := admin.Config().ConnConfig.Database + "_latin1"
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+name+" ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Exec(context.WithoutCancel(t.Context()), "DROP DATABASE "+name+" WITH (FORCE)") })
	url := strings.Replace(admin.Config().ConnString(), "/"+admin.Config().ConnConfig.Database, "/"+name, 1)
	want := `the encoding of database "` + name + `" is LATIN1, and aiv requires UTF8; ` +
		"create another database with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and name that one\n"
	for _, line := range []string{"migrate", "serve", "serve -migrate", "dispatch", "catalog import -", "status"} {
		code, _, stderr := aiv(t.Context(), append(words(line), "-database-url", url)...)
		if code != 1 || !strings.HasPrefix(stderr, "aiv: ") || !strings.HasSuffix(stderr, want) {
			t.Errorf("aiv %s: exit %d, stderr %q; want 1, %q", line, code, stderr, want)
		}
	}
}
