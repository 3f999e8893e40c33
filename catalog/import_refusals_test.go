package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"aiv/catalog"
	"aiv/store"
)

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("here"), question("ours", store.ID{}, "active"))
	f.load(t, question("private", f.ours, "active"))
	unknown, erased := store.NewID(), store.NewID()
	f.exec(t, `INSERT INTO accounts (id, name, plan_code, erased_at) VALUES ($1, 'erased', 'p', now())`, erased)
	change := func(line, old, new string) string {
		if !strings.Contains(line, old) {
			t.Fatalf("%s is not in %s", old, line)
		}
		return strings.Replace(line, old, new, 1)
	}
	const changed = "text, language or country differs from that of the existing question; these cannot be changed; add another question"
	const moved = "account_id differs from that of the existing question; it cannot be changed"
	q := question("q", store.ID{}, "active")
	f.load(t, strings.NewReplacer(`"q"`, `"long"`, "shoes", strings.Repeat("ß", 128), `"b"`, `"`+strings.Repeat("ß", 128)+`"`).Replace(q))
	// Of 21 lines that only the database can refuse, the first 20 are reported.
	const many = 21
	all := func(line func(id string) string, reason string) (lines, want string) {
		for i := range many {
			lines += line(fmt.Sprint("many/", i)) + "\n"
			if i < 20 {
				want += fmt.Sprintf("line %d: %s\n", i+2, reason)
			}
		}
		return lines, strings.TrimSuffix(want, "\n")
	}
	manyModels, wantModels := all(func(id string) string { return change(model(id), `"acme"`, `"none"`) }, "unknown provider")
	manyUnknown, wantUnknown := all(func(id string) string { return question(id, unknown, "active") }, "unknown account")
	manyErased, wantErased := all(func(id string) string { return question(id, erased, "active") }, "the account is erased")
	manyMoved, wantMoved := all(func(id string) string { return question(id, f.theirs, "active") }, moved)
	f.load(t, strings.ReplaceAll(manyMoved, f.theirs.Text("acct"), f.ours.Text("acct")))
	for _, test := range []struct {
		line string
		want string
	}{
		{`{"kind":"price","id":1}`, "line 2: kind must be one of provider, model, question, methodology"},
		{`{"kind":"provider","code":"a b","name":""}`, `line 2: code must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$; name must not be empty`},
		{change(model("m"), `"m"`, `"m m"`), "line 2: id must match ^[A-Za-z0-9._:/-]{1,128}$"},
		{model(strings.Repeat("m", 129)), "line 2: id must match ^[A-Za-z0-9._:/-]{1,128}$"},
		{change(model("m"), `,"grounded_search":true`, `,"price":"1"`), `line 2: missing member "grounded_search"; unknown member "price"`},
		{change(model("m"), `"active"`, `"archived"`), "line 2: status must be one of active, deprecated, disabled"},
		{change(model("m"), `"One"`, `" "`), "line 2: name must not be empty"},
		{change(model("m"), `["grounded"]`, `[]`), "line 2: measurement_types must not be empty"},
		{change(model("m"), `["grounded"]`, `["Grounded"]`), "line 2: measurement_types must contain only strings that match ^[a-z][a-z0-9_]{0,63}$"},
		{change(model("m"), `"countries":null`, `"countries":["it"]`), "line 2: countries must contain only strings that match ^[A-Z]{2}$"},
		{change(model("m"), `"countries":null`, `"countries":["IT","SM","IT"]`), `line 2: countries contains "IT" twice`},
		{change(model("m"), `"de-AT"`, `"de_AT"`), "line 2: languages must contain only strings that match ^[a-z]{2,3}(-[A-Z]{2})?$"},
		{change(model("m"), `"acme"`, `"none"`), "line 2: unknown provider"},
		{change(q, `"it"`, `"IT"`), "line 2: language must match ^[a-z]{2,3}(-[A-Z]{2})?$"},
		{change(q, `"IT"`, `"it"`), "line 2: country must match ^[A-Z]{2}$"},
		{change(q, `"b"`, `""`), "line 2: tags must not contain an empty string"},
		{change(q, `"b"`, `"`+strings.Repeat("ß", 129)+`"`), "line 2: tags must not be longer than 128 characters"},
		{change(q, "shoes", strings.Repeat("ß", 129)), "line 2: topic must not be longer than 128 characters"},
		{change(q, `"b"`, `"a"`), `line 2: tags contains "a" twice`},
		{change(q, `"active"`, `"disabled"`), "line 2: status must be one of active, archived"},
		{change(q, `null`, `"us"`), "line 2: account_id must be an account's id or null"},
		{change(q, `null`, `"`+f.ours.Text("cred")+`"`), "line 2: account_id must be an account's id or null"},
		{question("q", unknown, "active"), "line 2: unknown account"},
		{question("q", erased, "active"), "line 2: the account is erased"},
		{question("private", f.theirs, "active"), "line 2: " + moved},
		{question("private", store.ID{}, "active"), "line 2: " + moved},
		{question("ours", f.ours, "active"), "line 2: " + moved},
		{change(question("ours", store.ID{}, "active"), "Which?", "What?"), "line 2: " + changed},
		{change(question("private", f.ours, "active"), "Which?", "which?"), "line 2: " + changed},
		{change(question("private", f.ours, "active"), `"language":"it"`, `"language":"it-CH"`), "line 2: " + changed},
		{change(question("private", f.ours, "active"), `"country":"IT"`, `"country":"CH"`), "line 2: " + changed},
		{change(q, `"shoes"`, `""`), "line 2: topic must not be empty"},
		{change(methodology("1.0", "active", `"x"`), `20`, `20.0`), "line 2: version must match ^AIVM-[0-9]+\\.[0-9]+$; max_repetitions must be an integer"},
		{change(methodology("AIVM-2.0", "active", `"x"`), `20`, `32768`), "line 2: max_repetitions must be from 1 to 32767"},
		{change(methodology("AIVM-2.0", "active", `"x"`), `100000`, `0`), "line 2: max_jobs must be from 1 to 1000000"},
		{methodology("AIVM-2.0", "active", `"grounded"`), "more than one active methodology covers grounded; retire the others in the same file"},
		{methodology("AIVM-2.0", "active", `"grounded","b","a"`) + "\n" + methodology("AIVM-2.1", "active", `"a","b"`),
			"more than one active methodology covers a, b, grounded; retire the others in the same file"},
		{manyModels, wantModels},
		{manyUnknown, wantUnknown},
		{manyErased, wantErased},
		{manyMoved, wantMoved},
		{`{"kind":"provider","code":"new","name":"Twice"}`, "line 2: duplicate id (first on line 1)"},
		{"not JSON\n{}\n" + q, "line 2: at byte 0: \"not\" is not a JSON value\nline 3: missing member \"kind\""},
	} {
		before := f.state(t)
		// Neither the valid line before nor the one after may be written.
		file := `{"kind":"provider","code":"new","name":"New"}` + "\n" + test.line + "\n" + question("new", store.ID{}, "active")
		got, err := f.admin.Import(t.Context(), strings.NewReader(file), nil)
		if fmt.Sprint(err) != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.line, err, test.want)
		}
		if got != (catalog.Imported{}) {
			t.Errorf("%s: rejected, but counted as imported: %+v", test.line, got)
		}
		if after := f.state(t); after != before {
			t.Errorf("%s: the row counts changed from %s to %s", test.line, before, after)
		}
	}
}

// state counts the rows of each table that an import writes.
func (f *fixture) state(t *testing.T) string {
	t.Helper()
	return read[string](t, f, `SELECT concat_ws(' ', (SELECT count(*) FROM providers), (SELECT count(*) FROM models),
		(SELECT count(*) FROM questions), (SELECT count(*) FROM own_questions), (SELECT count(*) FROM methodologies), (SELECT revision FROM catalog_revision),
		(SELECT count(*) FROM audit_log))`)
}

// TestReplaceMethodology: one file activates a methodology and retires the previous one, in any order of lines.
func TestReplaceMethodology(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	retired, successor := methodology("AIVM-1.0", "retired", `"grounded"`), methodology("AIVM-1.1", "active", `"grounded"`)
	f.load(t, successor, retired)
	f.load(t, strings.Replace(successor, "active", "retired", 1), strings.Replace(retired, "retired", "active", 1))
	f.load(t, retired) // no methodology needs to cover a measurement type
}
