package demo

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/cmd/aiv/capability"
	"aiv/insights"
	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/storetest"
)

// TestFill starts the demonstration four times in one database, in which every invariant holds. The second start adds
// nothing but a key; one after a start that was interrupted adds what is missing; one after requests changed and deleted
// schedules keeps them so.
func TestFill(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	storetest.Exec(t, pool, `UPDATE schema_migrations SET applied_at = now()`) // as in a new database, whose history is older
	start := func() (key string) {
		t.Helper()
		secrets, err := Fill(t.Context(), pool)
		must(t, err)
		return secrets.Key
	}
	count := func(want int, what, sql string, args ...any) {
		t.Helper()
		equal(t, want, storetest.Value[int](t, pool, sql, args...), what)
	}
	first := start()
	count(3, "schedules with a history", `SELECT count(DISTINCT schedule_id) FROM schedule_occurrences WHERE evaluated_at IS NOT NULL`)
	count(3, "schedules with alerts", `SELECT count(DISTINCT schedule_id) FROM alerts`)
	count(1, "schedules with recommendations", `SELECT LEAST(count(*), 1) FROM recommendations WHERE schedule_id IS NOT NULL`)
	count(0, "answers after the end of their jobs",
		`SELECT count(*) FROM job_results WHERE (answer::jsonb->>'answered_at')::timestamptz > finished_at`)
	storetest.Verify(t, pool, capability.Invariants()...)

	before := tables(t, pool)
	if start() == first {
		t.Error("both starts printed the same key")
	}
	equal(t, before, tables(t, pool), "rows after the second start")
	storetest.Exec(t, pool, `DELETE FROM recommendations; DELETE FROM alerts; DELETE FROM idempotency_records`)
	start()
	equal(t, before, tables(t, pool), "rows after a start after an interrupted one")
	count(3, "keys after three starts", `SELECT count(*) FROM credentials`)
	count(1, "valid keys", `SELECT count(*) FROM credentials WHERE revoked_at IS NULL`)

	storetest.Exec(t, pool, `UPDATE schedules SET name = 'Renamed' WHERE name = 'Boots'`)
	var account, id store.ID
	must(t, pool.QueryRow(t.Context(), `SELECT account_id, id FROM schedules WHERE name = 'Running shoes'`).Scan(&account, &id))
	must(t, schedules.New(schedules.Config{Pool: pool}).Delete(t.Context(), account, id))
	start()
	count(2, "schedules after one was deleted", `SELECT count(*) FROM schedules`)
	count(2, "schedules with the new key", `SELECT count(*) FROM schedules s JOIN credentials c ON c.id = s.credential_id WHERE revoked_at IS NULL`)
}

// tables is what the demonstration writes, but for its keys and what refers to them, and for how often rows were
// locked.
func tables(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	tables := map[string]string{}
	written := []schema.Capability{catalog.Capability, runs.Capability, insights.Capability, brands.Capability, visibility.Capability,
		{Tables: []schema.Table{{Name: "plans"}, {Name: "accounts"}}}}
	for _, owned := range schema.Tables(written) {
		tables[owned.Name] = storetest.Value[string](t, pool, `
SELECT COALESCE(string_agg(line, E'\n' ORDER BY line), '')
FROM (SELECT (to_jsonb(r) - '{credential_id,additions}'::text[])::text AS line FROM `+owned.Name+` r) t`)
	}
	return tables
}

func TestMain(m *testing.M) { storetest.Main(m) }

var must, equal = storetest.Must, storetest.Equal

// TestTextOfEngines: two lines replace the sample worker by an engine; a demonstration that leaves providers to engines
// prints the command for each.
func TestTextOfEngines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		leave []string
		want  string
	}{
		{[]string{"anthropic", "openai"}, "RUN=$(ask first-$NEW google/gemini-2.5-pro |"},
		{workedProviders, "the run waits for the workers that you start below"},
		{nil, "\n/bin/aiv demo -leave openai\n/bin/aiv work -engine openai -provider openai -url http://127.0.0.1:8081 -token-file worker.token\n\n"},
		{[]string{"google", "xai"}, "\necho TOKEN >worker.token\n/bin/aiv work -engine gemini -provider google -url http://127.0.0.1:8081 -token-file worker.token\n" +
			"/bin/aiv work -engine xai -provider xai -url http://127.0.0.1:8081 -token-file worker.token\n\n"},
	} {
		var text strings.Builder
		service := Service{Program: "/bin/aiv", Workers: "http://127.0.0.1:8081", Leave: test.leave}
		service.Secrets.Token = "TOKEN"
		must(t, WriteText(&text, service))
		if !strings.Contains(text.String(), test.want) {
			t.Errorf("%v: the text lacks %q:\n%s", test.leave, test.want, &text)
		}
	}
}

// TestPrepareFolder: the demonstration uses only a folder that it made, alone, and changes nothing of another.
func TestPrepareFolder(t *testing.T) {
	t.Parallel()
	const unmarked, noFolder = "is not empty and has no file aiv-demo", "is not a folder"
	for name, test := range map[string]struct {
		prepare func(dir string) error
		reason  string // "" if it is used
	}{
		"does not exist": {func(string) error { return nil }, ""},
		"marked and used": {func(dir string) error {
			_, err := markFolder(dir)
			return errors.Join(err, os.Mkdir(dir+"/postgresql", 0o700))
		}, ""},
		"an operator's data folder": {func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(dir+"/aiv-private-postgresql", nil, 0o600))
		}, unmarked},
		"marked by a folder of that name": {func(dir string) error { return os.MkdirAll(filepath.Join(dir, marker), 0o755) }, unmarked},
		"a file":                          {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, noFolder},
		"a link": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"-target", 0o755), os.Symlink(dir+"-target", dir))
		}, noFolder},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := storetest.MkdirTemp("aiv-demo-test-") // PostgreSQL's account can't enter t.TempDir()
			must(t, err)
			t.Cleanup(func() { os.RemoveAll(made) })
			must(t, os.Chmod(made, 0o755))
			base, err := filepath.EvalSymlinks(made)
			must(t, err)
			dir := filepath.Join(base, "demo")
			must(t, test.prepare(dir))
			if test.reason != "" {
				refuses(t, base, dir, dir+" "+test.reason+"; aiv demo uses only a folder that it made itself")
				return
			}
			for range 2 {
				data, release, err := PrepareFolder(dir)
				must(t, err)
				equal(t, filepath.Join(dir, "postgresql"), data, "data folder")
				refuses(t, base, dir, "another aiv demo uses "+dir+";")
				release()
			}
		})
	}
}

// refuses checks that a folder is not used, for a reason, and that nothing below base changes.
func refuses(t *testing.T, base, dir, reason string) {
	t.Helper()
	files := func() (found []string) {
		must(t, filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
			found = append(found, path)
			return err
		}))
		return found
	}
	before := files()
	if _, _, err := PrepareFolder(dir); err == nil || !strings.HasPrefix(err.Error(), reason) {
		t.Errorf("got %v, want %s", err, reason)
	}
	equal(t, before, files(), "files")
}
