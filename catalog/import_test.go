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
	equal(t, "imported", catalog.Imported{Providers: 1, Methodologies: 1, Models: 3, Questions: 2}, got)
	equal(t, "audit_log", `olga catalog.import catalog {"models": 3, "providers": 1, "questions": 2, "rows_changed": 7, "methodologies": 1}`,
		storetest.Value[string](t, from.pool, `SELECT concat_ws(' ', actor, action, subject, detail) FROM audit_log`))
	from.load(t, edit(acme, `"acme"`, `"Abc"`), model("m0"), question("a", from.ours), methodology("AIVM-0.9", "retired", `"plain"`))
	to.exec(t, `UPDATE accounts SET id = $1 WHERE id = $2`, from.ours, to.ours)
	export := func(f *fixture) string {
		var b bytes.Buffer
		must(t, catalog.Export(t.Context(), f.pool, &b))
		return b.String()
	}
	first, state := export(from), from.state(t)
	if got, want := strings.Count(first, "\n"), 12; got != want { // the migrations add AIVM-1.0
		t.Errorf("exported %d lines, want %d:\n%s", got, want, first)
	}
	to.load(t, first)
	equal(t, "another database", first, export(to))
	from.load(t, first)
	equal(t, "row counts, times of creation and revision", state, from.state(t))
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
			equal(t, "error", "more than one active methodology covers plain; retire the others in the same file", err.Error())
		}
	}
	equal(t, "imports that succeeded", 1, succeeded)
}

// refuses imports lines between two valid ones, which are not written either.
func (f *fixture) refuses(t *testing.T, want string, lines ...string) {
	t.Helper()
	before := f.state(t)
	got, err := f.importLines(t, edit(acme, "acme", "new"), strings.Join(lines, "\n"), question("new", shared))
	equal(t, "error", want, fmt.Sprint(err))
	if after := f.state(t); got != (catalog.Imported{}) || after != before {
		t.Errorf("%v is refused, but %+v is imported: the row counts changed from %s to %s", lines, got, before, after)
	}
}

// TestImportRefusesChanges: of the lines that only the database can refuse, the first 20 are reported, for one reason. The
// transcripts of cmd/aiv have the faults of form.
func TestImportRefusesChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, question("shared", shared))
	unknown, erased := store.NewID(), store.NewID()
	f.exec(t, `INSERT INTO accounts (id, name, plan_code, erased_at) VALUES ($1, 'erased', 'p', now())`, erased)
	private := question("private", f.ours)
	f.load(t, private)
	var many, manyOurs, manyTheirs, manyUnknown, manyErased []string
	for i := range 21 {
		id := fmt.Sprint("many/", i)
		many = append(many, edit(model(id), `"acme"`, `"none"`))
		manyOurs, manyTheirs = append(manyOurs, question(id, f.ours)), append(manyTheirs, question(id, f.theirs))
		manyUnknown, manyErased = append(manyUnknown, question(id, unknown)), append(manyErased, question(id, erased))
	}
	f.load(t, manyOurs...)
	const changed = "text, language or country differs from that of the existing question; these cannot be changed; " +
		"add another question"
	const moved = "account_id differs from that of the existing question; it cannot be changed"
	for _, tt := range []struct {
		want  string
		lines []string
	}{
		{"unknown provider", many}, {"unknown account", manyUnknown}, {"the account is erased", manyErased}, {moved, manyTheirs},
		{moved, []string{question("private", f.theirs)}},
		{moved, []string{question("private", shared), question("shared", f.ours)}},
		{changed, []string{edit(question("shared", shared), "Which?", "What?"), edit(private, "Which?", "which?")}},
		{changed, []string{edit(private, `"language":"it"`, `"language":"it-CH"`)}},
		{changed, []string{edit(private, `"country":"IT"`, `"country":"CH"`)}},
	} {
		var want []string
		for i := range min(len(tt.lines), 20) {
			want = append(want, fmt.Sprintf("line %d: %s", i+2, tt.want))
		}
		f.refuses(t, strings.Join(want, "\n"), tt.lines...)
	}
}

// TestReplaceMethodology: one active methodology covers a measurement type. One file activates a methodology and
// retires the previous one, in any order of lines.
func TestReplaceMethodology(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.refuses(t, "more than one active methodology covers grounded; retire the others in the same file",
		methodology("AIVM-2.0", "active", `"grounded"`))
	f.refuses(t, "more than one active methodology covers a, b, grounded; retire the others in the same file",
		methodology("AIVM-2.0", "active", `"grounded","b","a"`), methodology("AIVM-2.1", "active", `"a","b"`))
	retired, successor := methodology("AIVM-1.0", "retired", `"grounded"`), methodology("AIVM-1.1", "active", `"grounded"`)
	f.load(t, successor, retired)
	f.load(t, edit(successor, "active", "retired"), edit(retired, "retired", "active"))
	f.load(t, retired) // no methodology needs to cover a measurement type
}

// TestImportWhileErased: an import does not add questions to an account that is erased after its lines were checked.
func TestImportWhileErased(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.load(t, question("q", f.ours))
	tx := storetest.Begin(t, f.pool, `UPDATE own_question_accounts SET additions = additions + 1`)
	imported := make(chan error, 1)
	go func() {
		_, err := f.importLines(t, question("late", f.ours))
		imported <- err
	}()
	storetest.UntilWaiting(t, f.pool, "transactionid")
	f.exec(t, `UPDATE accounts SET erased_at = now() WHERE id = $1`, f.ours)
	must(t, tx.Rollback(t.Context()))
	equal(t, "error", "an account of the file has been erased meanwhile", fmt.Sprint(<-imported))
	equal(t, "questions", 1, storetest.Value[int](t, f.pool, `SELECT count(*) FROM own_questions`))
}
