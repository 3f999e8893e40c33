package catalog_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
)

// everything returns lines of each kind, where references come before what they refer to.
func (f *fixture) everything() []string {
	return []string{
		question("q/ours", f.ours, "active"), model("m1"), "", acme, question("q/shared", store.ID{}, "archived"),
		methodology("AIVM-2.0", "active", `"plain"`),
		strings.NewReplacer(`"countries":null`, `"countries":["IT"]`, `["it","de-AT"]`, `null`, "true}", "false}").Replace(model("m2")),
		strings.NewReplacer(`["it","de-AT"]`, `[]`, `"One"`, `"\u00c9t\u00e9 \"<&>\" \\"`).Replace(model("m3")),
	}
}

func TestImportTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	file := strings.Join(f.everything(), "\n")
	want := catalog.Imported{Providers: 1, Methodologies: 1, Models: 3, Questions: 2}
	before := f.revision(t)
	var times []time.Time
	for i := range 3 { // also repeats the names of temporary tables on a connection
		got, err := f.admin.Import(t.Context(), strings.NewReader(file), nil)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("import %d (-want +got):\n%s", i+1, diff)
		}
		after := f.revision(t)
		if changed := after != before; changed != (i == 0) {
			t.Errorf("import %d: the revision changed: %v", i+1, changed)
		}
		if after < before {
			t.Errorf("import %d: the revision went from %d to %d", i+1, before, after)
		}
		before = after
		times = append(times, read[time.Time](t, f, `
SELECT LEAST((SELECT min(created_at) FROM questions), (SELECT min(created_at) FROM own_questions))`))
	}
	if diff := cmp.Diff(times[:1], times[2:]); diff != "" {
		t.Errorf("created_at (-first +last import):\n%s", diff)
	}
	log := read[[]string](t, f, `SELECT array_agg(concat_ws(' ', actor, action, subject, detail)) FROM audit_log`)
	wantLog := []string{`olga catalog.import catalog {"models": 3, "providers": 1, "questions": 2, "rows_changed": 7, "methodologies": 1}`}
	if diff := cmp.Diff(wantLog, log); diff != "" {
		t.Errorf("audit_log (-want +got):\n%s", diff)
	}
}

// TestExportImport: importing an export into another database and exporting it again gives the same bytes.
func TestExportImport(t *testing.T) {
	t.Parallel()
	from, to := newFixture(t), newFixture(t)
	from.load(t, from.everything()...)
	from.load(t, strings.Replace(acme, `"acme"`, `"Abc"`, 1), model("m0"), question("a", from.ours, "active"), methodology("AIVM-0.9", "retired", `"plain"`))
	to.exec(t, `UPDATE accounts SET id = $1 WHERE id = $2`, from.ours, to.ours)
	export := func(f *fixture) string {
		var b bytes.Buffer
		must(t, catalog.Export(t.Context(), f.pool, &b))
		return b.String()
	}
	first := export(from)
	if got, want := strings.Count(first, "\n"), 12; got != want { // the migrations add AIVM-1.0
		t.Errorf("exported %d lines, want %d:\n%s", got, want, first)
	}
	to.load(t, first)
	if diff := cmp.Diff(first, export(to)); diff != "" {
		t.Errorf("another database (-first +second export):\n%s", diff)
	}
	before := from.revision(t)
	from.load(t, first)
	if from.revision(t) != before {
		t.Error("importing an export changed its database")
	}
}

// TestExportToASlowReader: the timeouts of a session do not end an export whose reader is slow.
func TestExportToASlowReader(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const questions = 5000 // more than the buffers between the server and the reader hold
	f.exec(t, `
INSERT INTO questions (id, text, language, country, topic, tags, status)
SELECT 'q' || n, repeat('x', 1000), 'it', 'IT', '', '{}', 'active' FROM generate_series(1, $1::integer) n`, questions)
	config := f.pool.Config()
	config.ConnConfig.RuntimeParams["statement_timeout"] = "100ms"
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "100ms"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	must(t, err)
	defer pool.Close()
	var b bytes.Buffer
	slow := func(p []byte) (int, error) {
		if b.Len() == 0 {
			f.exec(t, `SELECT pg_sleep(0.3)`)
		}
		return b.Write(p)
	}
	must(t, catalog.Export(t.Context(), pool, writer(slow)))
	if got, want := strings.Count(b.String(), `"kind":"question"`), questions; got != want {
		t.Errorf("exported %d questions, want %d", got, want)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestEachChange changes one member at a time: each change increases the revision, and a repeated import does not.
func TestEachChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lines := []string{acme, strings.Replace(acme, "acme", "other", 1), model("m"), question("q", f.ours, "active"),
		question("s", store.ID{}, "active"), methodology("AIVM-2.0", "retired", `"plain"`)}
	f.load(t, lines...)
	c := catalog.New(f.pool)
	revision := f.now(t, c).Revision
	for _, change := range []struct {
		line     int
		old, new string
	}{
		{0, `"Acme"`, `"ACME"`},
		{2, `"One"`, `"Two"`},
		{2, `"acme"`, `"other"`},
		{2, `one-1`, `one-2`},
		{2, `"active"`, `"deprecated"`},
		{2, `["grounded"]`, `["grounded","plain"]`},
		{2, `"countries":null`, `"countries":[]`},
		{2, `["it","de-AT"]`, `null`},
		{2, `true}`, `false}`},
		{3, `shoes`, `hats`},
		{3, `["a","b"]`, `["b","a"]`},
		{3, `"active"`, `"archived"`},
		{4, `shoes`, `hats`},
		{4, `["a","b"]`, `["b","a"]`},
		{4, `"active"`, `"archived"`},
		{5, `"retired"`, `"active"`},
		{5, `["plain"]`, `["other"]`},
		{5, `:20,`, `:21,`},
		{5, `100000`, `99999`},
	} {
		changed := strings.Replace(lines[change.line], change.old, change.new, 1)
		if changed == lines[change.line] {
			t.Fatalf("%s is not in %s", change.old, changed)
		}
		lines[change.line] = changed
		f.load(t, changed)
		next := f.now(t, c).Revision
		if next <= revision {
			t.Errorf("%s for %s: revision %d after %d", change.new, change.old, next, revision)
		}
		revision = next
		f.load(t, lines...)
		if f.revision(t) != revision {
			t.Errorf("%s for %s: importing it again increased the revision", change.new, change.old)
		}
	}
}

// TestConcurrentImports: of imports that are valid alone and conflict with each other, one succeeds.
func TestConcurrentImports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = f.admin.Import(t.Context(), strings.NewReader(methodology(fmt.Sprintf("AIVM-2.%d", i), "active", `"plain"`)), nil)
		})
	}
	wg.Wait()
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
			if storetest.OnCitus() && store.IsLockTimeout(err) {
				continue // a cluster gives up on locks sooner
			}
			if got, want := err.Error(), "more than one active methodology covers plain; retire the others in the same file"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	if failed != len(errs)-1 {
		t.Errorf("%d of %d imports failed", failed, len(errs))
	}
}

// TestQuestionTags: an import writes the tags of the questions that it adds or changes, and keeps those of all others.
func TestQuestionTags(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tagged := func(id string, owner store.ID, tags string) string {
		return strings.Replace(question(id, owner, "active"), `"a","b"`, tags, 1)
	}
	f.load(t, tagged("shared", store.ID{}, `"a","b"`), tagged("ours", f.ours, `"a"`), tagged("none", f.ours, ``), tagged("kept", f.ours, `"k"`))
	for _, step := range []struct {
		lines []string
		want  []string
	}{
		{nil, []string{"ours: a", "ours: k", "shared: a", "shared: b"}},
		{[]string{tagged("shared", store.ID{}, `"b","c"`)}, []string{"ours: a", "ours: k", "shared: b", "shared: c"}},
		{[]string{tagged("shared", store.ID{}, `"c","b"`)}, []string{"ours: a", "ours: k", "shared: b", "shared: c"}},
		{[]string{tagged("shared", store.ID{}, ``), tagged("none", f.ours, `"n"`)}, []string{"ours: a", "ours: k", "ours: n"}},
		{[]string{strings.Replace(tagged("ours", f.ours, `"a"`), "active", "archived", 1)}, []string{"ours: a", "ours: k", "ours: n"}},
	} {
		if step.lines != nil {
			f.load(t, step.lines...)
		}
		got := read[[]string](t, f, `
SELECT array(
  SELECT 'shared: ' || tag FROM question_tags
  UNION ALL SELECT 'ours: ' || tag FROM own_question_tags WHERE account_id = $1 ORDER BY 1)`, f.ours)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", step.lines, diff)
		}
	}
}
