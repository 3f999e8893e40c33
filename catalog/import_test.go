package catalog_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"
)

// TestExportImport: importing an export into another database and exporting it again gives the same bytes. Importing it
// into its own database changes nothing. References may come before what they refer to.
func TestExportImport(t *testing.T) {
	t.Parallel()
	from, to := newFixture(t), newFixture(t)
	got, err := from.importLines(t, question("q/ours", from.ours), model("m1"), "", acme, archived(question("q/shared", shared)),
		methodology("AIVM-2.0", "active", `"plain"`),
		edit(model("m2"), `"countries":null`, `"countries":["IT"]`, `["it","de-AT"]`, `null`, "true}", "false}"),
		edit(model("m3"), `["it","de-AT"]`, `[]`, `"One"`, `"\u00c9t\u00e9 \"<&>\" \\"`))
	must(t, err)
	equal(t, catalog.Imported{Providers: 1, Methodologies: 1, Models: 3, Questions: 2}, got, "imported")
	equal(t, `olga catalog.import catalog {"models": 3, "providers": 1, "questions": 2, "rows_changed": 7, "methodologies": 1}`,
		storetest.Value[string](t, from.pool, `SELECT concat_ws(' ', actor, action, subject, detail) FROM audit_log`), "audit_log")
	from.load(t, edit(acme, `"acme"`, `"Abc"`), model("m0"), question("a", from.ours), methodology("AIVM-0.9", "retired", `"plain"`))
	to.exec(t, `UPDATE accounts SET id = $1 WHERE id = $2`, from.ours, to.ours)
	export := func(f *fixture) string {
		var b bytes.Buffer
		must(t, catalog.Export(t.Context(), f.pool, &b))
		return b.String()
	}
	first, state := export(from), from.state(t)
	storetest.Equal(t, 12, strings.Count(first, "\n"), "lines, of which the migrations add AIVM-1.0: ", first)
	to.load(t, first)
	equal(t, first, export(to), "another database")
	from.load(t, first)
	equal(t, state, from.state(t), "row counts, times of creation and revision")
}

// TestEachChange changes one member at a time: each change increases the revision, and a repeated import does not. The
// tags by which questions are found follow.
func TestEachChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	lines := []string{acme, edit(acme, "acme", "other"), model("m"), question("q", f.ours), question("s", shared),
		methodology("AIVM-2.0", "retired", `"plain"`)}
	f.load(t, lines...)
	revision := f.revision(t)
	for _, change := range []struct {
		line     int
		old, new string
	}{
		{0, `"Acme"`, `"ACME"`},
		{2, `"One"`, `"Two"`}, {2, `"acme"`, `"other"`}, {2, `one-1`, `one-2`}, {2, `"active"`, `"deprecated"`},
		{2, `["grounded"]`, `["grounded","plain"]`}, {2, `"countries":null`, `"countries":[]`}, {2, `["it","de-AT"]`, `null`},
		{2, `true}`, `false}`},
		{3, `shoes`, `hats`}, {3, `["a","b"]`, `["b","a"]`}, {3, `["b","a"]`, `["c","b"]`}, {3, `"active"`, `"archived"`},
		{4, `shoes`, `hats`}, {4, `["a","b"]`, `["b","a"]`}, {4, `["b","a"]`, `[]`}, {4, `"active"`, `"archived"`},
		{5, `"retired"`, `"active"`}, {5, `["plain"]`, `["other"]`}, {5, `:20,`, `:21,`}, {5, `100000`, `99999`},
	} {
		lines[change.line] = edit(lines[change.line], change.old, change.new)
		f.load(t, lines[change.line])
		next := f.revision(t)
		f.load(t, lines...)
		if again := f.revision(t); next <= revision || again != next {
			t.Errorf("%+v: revision %d, %d, and %d when it is imported again", change, revision, next, again)
		}
		revision = next
	}
	storetest.Verify(t, f.pool, catalog.Invariants()...)
}

// TestConcurrentImports: of imports that are valid alone and conflict with each other, one succeeds.
func TestConcurrentImports(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	errs := make([]error, 4)
	storetest.AtOnce(len(errs), func(i int) {
		_, errs[i] = f.importLines(t, methodology(fmt.Sprintf("AIVM-2.%d", i), "active", `"plain"`))
	})
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
		} else if !storetest.OnCitus() || !store.IsLockTimeout(err) { // a cluster gives up on locks sooner
			equal(t, "more than one active methodology covers plain; retire the others in the same file", err.Error(), "error")
		}
	}
	equal(t, 1, succeeded, "imports that succeeded")
}

// TestImportRefuses: of the lines that only the database can refuse, the first 20 are reported, and nothing is written.
// The transcripts of cmd/aiv have the other faults.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	erased, before := store.NewID(), f.state(t)
	f.exec(t, `INSERT INTO accounts (id, name, plan_code, erased_at) VALUES ($1, 'erased', 'p', now())`, erased)
	lines, want := []string{acme}, []string{}
	for i := range 21 {
		lines, want = append(lines, question(fmt.Sprint("q", i), erased)), append(want, fmt.Sprintf("line %d: the account is erased", i+2))
	}
	_, err := f.importLines(t, lines...)
	equal(t, strings.Join(want[:20], "\n"), fmt.Sprint(err), "error")
	equal(t, before, f.state(t), "row counts")
}

// TestImportWhileErased: an import does not add questions to an account that is erased after its lines were checked.
func TestImportWhileErased(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.load(t, question("q", f.ours))
	tx := storetest.Begin(t, f.pool, `UPDATE own_question_accounts SET additions = additions + 1`)
	imported := make(chan error, 1)
	go func() { imported <- storetest.Ignore(f.importLines(t, question("late", f.ours))) }()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	f.exec(t, `UPDATE accounts SET erased_at = now() WHERE id = $1`, f.ours)
	must(t, tx.Rollback(t.Context()))
	equal(t, "an account of the file has been erased meanwhile", fmt.Sprint(<-imported), "error")
	equal(t, 1, storetest.Value[int](t, f.pool, `SELECT count(*) FROM own_questions`), "questions")
}
