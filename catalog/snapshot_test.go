package catalog_test

import (
	"strings"
	"testing"
	"time"

	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"
)

func TestPatternCoversModels(t *testing.T) {
	for _, tt := range []struct {
		countries, languages []string
		country, language    string
		wantCountry, want    bool
	}{
		{nil, nil, "IT", "it", true, true},
		{[]string{}, []string{}, "IT", "it", false, false},
		{[]string{"DE", "IT"}, []string{"de", "it"}, "IT", "it-IT", true, true},
		{[]string{"IT"}, []string{"it-IT"}, "CH", "it", false, false},
		{[]string{"I"}, []string{"i"}, "IT", "it", false, false},
		// RFC 4647, section 3.3.1: a range matches a tag that starts with it, followed by a hyphen or the end.
		{nil, []string{"de"}, "DE", "de-DE-1996", true, true},
		{nil, []string{"de-DE"}, "DE", "de-DE-1996", true, true},
		{nil, []string{"de-DE"}, "DE", "de-Deva", true, false},
		{nil, []string{"de-DE"}, "DE", "de-Latn-DE", true, false},
		{nil, []string{"de"}, "DE", "den", true, false},
	} {
		m := catalog.Model{Countries: tt.countries, Languages: tt.languages}
		country, language := m.Covers(tt.country, tt.language)
		if country != tt.wantCountry || language != tt.want {
			t.Errorf("%+v: got %v, %v", tt, country, language)
		}
	}
}

func TestSnapshotFindsModelsAndQuestions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("b"), methodology("AIVM-0.9", "retired", `"grounded","plain"`),
		methodology("AIVM-2.0", "active", `"plain","other"`))
	f.load(t, model("a"))
	snapshot := f.now(t, catalog.New(f.pool))
	want := catalog.Model{
		ID: "a", Name: "One", Provider: "acme", ProviderModel: "one-1", Status: "active", MeasurementTypes: []string{"grounded"},
		Languages: []string{"it", "de-AT"}, GroundedSearch: true, Unmet: catalog.Dependencies,
	}
	second := want
	second.ID = "b"
	equal(t, []catalog.Model{want, second}, snapshot.Models, "models")
	equal(t, []*catalog.Model{&second, nil}, []*catalog.Model{snapshot.Model("b"), snapshot.Model("B")}, "models b and B")
	for measurementType, want := range map[string]string{"grounded": "AIVM-1.0", "plain": "AIVM-2.0", "other": "AIVM-2.0", "none": "", "": ""} {
		got := ""
		if m := snapshot.Methodology(measurementType); m != nil {
			got = m.Version
		}
		equal(t, want, got, "methodology of "+measurementType)
	}
}

// TestQuestionStatus: a snapshot knows the questions that an account can use. It caches shared ones, for any number of
// goroutines.
func TestQuestionStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.load(t, question("shared", shared), question("ours", f.ours), question("theirs", f.theirs),
		archived(question("old", shared)), archived(question("ours/old", f.ours)), archived(question("theirs/old", f.theirs)))
	c := catalog.New(f.pool)
	snapshot := f.now(t, c)
	accounts := []store.ID{f.ours, f.theirs, store.NewID()}
	storetest.AtOnce(24, func(i int) {
		ids := []string{"ours/old", "none", "theirs", "shared", "theirs/old", "old", "shared", "", "ours", "SHARED"}
		want := []string{"archived,,,active,,archived,active,,active,", ",,active,active,archived,archived,active,,,",
			",,,active,,archived,active,,,"}
		got, err := snapshot.QuestionStatus(t.Context(), accounts[i%3], ids)
		if strings.Join(got, ",") != want[i%3] {
			t.Errorf("account %d: got %q (%v), want %s", i%3, got, err, want[i%3])
		}
	})
	// A new revision has the changes, although the previous snapshot cached the status or found no question.
	f.load(t, archived(question("shared", shared)), question("none", f.ours))
	got, err := f.now(t, c).QuestionStatus(t.Context(), f.ours, []string{"shared", "none", "ours"})
	must(t, err)
	equal(t, []string{"archived", "active", "active"}, got, "the next revision")
	f.pool.Close()
	if _, err := snapshot.QuestionStatus(t.Context(), f.ours, []string{"shared", "old"}); err != nil {
		t.Errorf("cached statuses need the database: %v", err)
	}
	if got, err := snapshot.QuestionStatus(t.Context(), f.ours, []string{"shared", "unknown"}); err == nil {
		t.Errorf("without a database: got %v", got)
	}
}

// TestDependencies: the dependencies of a provider are unmet in its models until an operator records them. The
// transcripts of cmd/aiv list them.
func TestDependencies(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("m"))
	c := catalog.New(f.pool)
	for _, step := range []struct {
		dependency string
		met        bool
		unmet      string
	}{
		{"contract", true, "configuration secret legal_approval"}, {"secret", true, "configuration legal_approval"},
		{"legal_approval", true, "configuration"}, {"configuration", true, ""}, {"contract", false, "contract"}, {"contract", false, "contract"},
	} {
		before := f.revision(t)
		must(t, f.admin.SetDependency(t.Context(), "acme", step.dependency, step.met, "checked"))
		equal(t, step.unmet, strings.Join(f.now(t, c).Model("m").Unmet, " "), "unmet in the model")
		if f.revision(t) <= before {
			t.Errorf("%+v: the revision did not increase", step)
		}
	}
}

// TestAtReadsOnlyAfterAChange: each change has a new revision and a new snapshot; without a change the database is not
// read. The revision is the time in microseconds at least, so that a restored database does not repeat one.
func TestAtReadsOnlyAfterAChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("m"))
	began := f.revision(t)
	for _, before := range []int64{7, began, began + time.Hour.Microseconds()} {
		f.exec(t, `UPDATE catalog_revision SET revision = $1`, before)
		must(t, f.admin.SetDependency(t.Context(), "acme", "contract", true, "checked"))
		if got := f.revision(t); got <= max(before, began) {
			t.Errorf("a change after revision %d at the time %d made revision %d", before, began, got)
		}
	}
	c := catalog.New(f.pool)
	first := f.now(t, c)
	if again := f.now(t, c); again != first {
		t.Error("a revision was read twice")
	}
	f.load(t, model("m2"))
	second := f.now(t, c)
	if second == first || second.Model("m2") == nil || first.Model("m2") != nil {
		t.Error("the change is missing from the next snapshot, or is in the previous one")
	}
	// A restored database has an earlier revision than the snapshot.
	f.exec(t, `UPDATE catalog_revision SET revision = 7`)
	f.exec(t, `DELETE FROM models WHERE id = 'm2'`)
	if restored := f.now(t, c); restored.Revision != 7 || restored.Model("m2") != nil {
		t.Errorf("after a restore: revision %d", restored.Revision)
	}
	f.pool.Close()
	if _, err := c.At(t.Context(), 8); err == nil {
		t.Error("At returned a snapshot of a revision that it could not read")
	}
	if _, err := c.At(t.Context(), 7); err != nil {
		t.Errorf("At needs the database for the revision that it keeps: %v", err)
	}
}
