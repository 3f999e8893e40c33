package catalog_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPatternCoversModels(t *testing.T) {
	for _, tt := range []struct {
		countries, languages []string
		country, language    string
		wantCountry, want    bool
	}{
		{nil, nil, "IT", "it", true, true},
		{[]string{}, []string{}, "IT", "it", false, false},
		{[]string{"IT"}, []string{"it"}, "IT", "it", true, true},
		{[]string{"DE", "IT"}, []string{"de", "it"}, "IT", "it-IT", true, true},
		{[]string{"IT"}, []string{"it-IT"}, "CH", "it", false, false},
		{[]string{"I"}, []string{"i"}, "IT", "it", false, false},
		// RFC 4647, section 3.3.1: a range matches a tag that starts with it, followed by a hyphen or the end.
		{nil, []string{"de-DE"}, "DE", "de-DE", true, true},
		{nil, []string{"de"}, "DE", "de-DE-1996", true, true},
		{nil, []string{"de-DE"}, "DE", "de-DE-1996", true, true},
		{nil, []string{"de-DE"}, "DE", "de-Deva", true, false},
		{nil, []string{"de-DE"}, "DE", "de-Latn-DE", true, false},
		{nil, []string{"de"}, "DE", "den", true, false},
		{nil, []string{"de"}, "DE", "d", true, false},
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
	equal(t, "models", []catalog.Model{want, second}, snapshot.Models)
	equal(t, "model b", &second, snapshot.Model("b"))
	if m := snapshot.Model("B"); m != nil || !want.Measures("grounded") || want.Measures("plain") {
		t.Errorf("model B: got %v; or Measures is wrong for grounded or plain", m)
	}
	for measurementType, want := range map[string]string{"grounded": "AIVM-1.0", "plain": "AIVM-2.0", "other": "AIVM-2.0", "none": "", "": ""} {
		got := ""
		if m := snapshot.Methodology(measurementType); m != nil {
			got = m.Version
		}
		equal(t, "methodology of "+measurementType, want, got)
	}
}

// TestListPageBeginsBehindAMissingModel: a page begins after its position, also if no model is there any more, and has
// one model more than its limit.
func TestListPageBeginsBehindAMissingModel(t *testing.T) {
	t.Parallel()
	s := catalog.Snapshot{Models: []catalog.Model{
		{ID: "a", Provider: "p", Status: "active", MeasurementTypes: []string{"grounded"}, GroundedSearch: true},
		{ID: "c", Provider: "q", Status: "active", MeasurementTypes: []string{"plain"}, GroundedSearch: true, Unmet: []string{"secret"}},
		{ID: "e", Provider: "p", Status: "disabled", MeasurementTypes: []string{"plain", "grounded"}},
	}}
	for _, tt := range []struct {
		filter catalog.ModelFilter
		after  string
		limit  int
		want   string
	}{
		{limit: 3, want: "ace"},
		{limit: 1, want: "ac"},
		{limit: 3, after: "a", want: "ce"},
		{limit: 3, after: "b", want: "ce"},
		{limit: 3, after: "e", want: ""},
		{limit: 3, after: "f", want: ""},
		{limit: 3, filter: catalog.ModelFilter{Provider: "p"}, want: "ae"},
		{limit: 3, filter: catalog.ModelFilter{Status: "active"}, want: "ac"},
		{limit: 3, filter: catalog.ModelFilter{MeasurementType: "plain"}, want: "ce"},
		{limit: 3, filter: catalog.ModelFilter{GroundedSearch: new(true)}, want: "a"},
		{limit: 3, filter: catalog.ModelFilter{GroundedSearch: new(false)}, want: "ce"},
		{limit: 3, filter: catalog.ModelFilter{Provider: "p", Status: "active", MeasurementType: "plain"}, want: ""},
	} {
		page := store.Page{Limit: tt.limit}
		if tt.after != "" {
			page.After = &store.Position{Text: tt.after}
		}
		got := ""
		for _, m := range s.List(tt.filter, page) {
			got += m.ID
		}
		equal(t, fmt.Sprintf("%+v", tt), tt.want, got)
	}
}

// TestQuestionPages: reading page by page returns each question that the account can use and the filter selects once,
// ordered by id.
func TestQuestionPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	german := func(id string, owner store.ID) string {
		return edit(question(id, owner), `"a","b"`, `"c"`, "shoes", "hats", `"it"`, `"de"`, `"IT"`, `"AT"`)
	}
	f.load(t, question("e", shared), archived(question("d", f.ours)), german("c", shared), question("b", f.theirs),
		german("a", f.ours), question("f", f.ours))
	for _, tt := range []struct {
		filter catalog.QuestionFilter
		want   string
	}{
		{catalog.QuestionFilter{}, "acdef"},
		{catalog.QuestionFilter{Tag: "b"}, "def"},
		{catalog.QuestionFilter{Tag: "c"}, "ac"},
		{catalog.QuestionFilter{Topic: "shoes"}, "def"},
		{catalog.QuestionFilter{Language: "de"}, "ac"},
		{catalog.QuestionFilter{Country: "AT"}, "ac"},
		{catalog.QuestionFilter{Status: "active"}, "acef"},
		{catalog.QuestionFilter{Tag: "a", Topic: "shoes", Language: "it", Country: "IT", Status: "active"}, "ef"},
		{catalog.QuestionFilter{Tag: "a", Topic: "hats"}, ""},
	} {
		for limit := 1; limit < 6; limit++ {
			got, page := "", store.Page{Limit: limit}
			for more := true; more && len(got) < 10; {
				found, err := catalog.Questions(t.Context(), f.pool, f.ours, tt.filter, page)
				must(t, err)
				more = len(found) > limit
				for _, q := range found[:min(limit, len(found))] {
					got += q.ID
					page.After = &store.Position{Text: q.ID}
				}
			}
			equal(t, fmt.Sprintf("%+v by %d", tt.filter, limit), tt.want, got)
		}
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
	var group sync.WaitGroup
	for account, want := range map[store.ID]string{
		f.ours: "archived,,,active,,archived,active,,active,", f.theirs: ",,active,active,archived,archived,active,,,",
		store.NewID(): ",,,active,,archived,active,,,",
	} {
		for range 8 {
			group.Go(func() {
				ids := []string{"ours/old", "none", "theirs", "shared", "theirs/old", "old", "shared", "", "ours", "SHARED"}
				got, err := snapshot.QuestionStatus(t.Context(), account, ids)
				if strings.Join(got, ",") != want {
					t.Errorf("got %q (%v), want %s", got, err, want)
				}
			})
		}
	}
	group.Wait()
	// A new revision has the changes, although the previous snapshot cached the status or found no question.
	f.load(t, archived(question("shared", shared)), question("none", f.ours))
	got, err := f.now(t, c).QuestionStatus(t.Context(), f.ours, []string{"shared", "none", "ours"})
	must(t, err)
	equal(t, "the next revision", []string{"archived", "active", "active"}, got)
	if got, err := snapshot.QuestionStatus(t.Context(), f.ours, nil); err != nil || len(got) != 0 {
		t.Errorf("without ids: got %v, %v", got, err)
	}
	f.pool.Close()
	if _, err := snapshot.QuestionStatus(t.Context(), f.ours, []string{"shared", "old"}); err != nil {
		t.Errorf("cached statuses need the database: %v", err)
	}
	if got, err := snapshot.QuestionStatus(t.Context(), f.ours, []string{"shared", "unknown"}); err == nil {
		t.Errorf("without a database: got %v", got)
	}
}

// TestValuesMatchConstraints: the tables accept exactly the values that the package declares.
func TestValuesMatchConstraints(t *testing.T) {
	t.Parallel()
	f := &fixture{pool: storetest.New(t)}
	for constraint, want := range map[string][]string{
		"models_status_check": catalog.ModelStatuses, "questions_status_check": catalog.QuestionStatuses,
		"methodologies_status_check": catalog.MethodologyStatuses, "provider_dependencies_dependency_check": catalog.Dependencies,
		"models_id_check": {catalog.IDPattern().String()}, "questions_id_check": {catalog.IDPattern().String()},
		"methodologies_version_check": {catalog.MethodologyPattern().String()}, "providers_code_check": {catalog.ProviderPattern().String()},
	} {
		equal(t, constraint, want, read[[]string](t, f, `
SELECT array_agg(m[1])
FROM (SELECT oid FROM pg_constraint WHERE conname = $1 ORDER BY oid LIMIT 1) c, -- those of the shards on a cluster have the same name
  regexp_matches(pg_get_constraintdef(oid), '''([^'']+)''::', 'g') m`, constraint))
	}
}

// TestDependencies: the dependencies of a provider are unmet until an operator records them, in its models too.
func TestDependencies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	list := func() []catalog.Provider {
		t.Helper()
		providers, err := catalog.Providers(t.Context(), f.pool)
		must(t, err)
		return providers
	}
	equal(t, "an empty catalog", []catalog.Provider{}, list())
	f.load(t, acme, `{"kind":"provider","code":"Best","name":"Best"}`, model("m"))
	c := catalog.New(f.pool)
	unmet := func() (all []catalog.Dependency) {
		for _, name := range []string{"configuration", "secret", "contract", "legal_approval"} {
			all = append(all, catalog.Dependency{Name: name})
		}
		return all
	}
	want := []catalog.Provider{{"Best", "Best", unmet()}, {"acme", "Acme", unmet()}}
	for _, step := range []struct {
		at    int // of the dependency
		note  string
		met   bool
		unmet string
	}{
		{2, "signed", true, "configuration secret legal_approval"},
		{1, "in the vault", true, "configuration legal_approval"},
		{3, "by Ada", true, "configuration"},
		{0, "tried", true, ""},
		{2, "ended", false, "contract"},
		{2, "still ended", false, "contract"},
	} {
		d := &want[1].Dependencies[step.at]
		d.Met, d.Note = step.met, step.note
		f.exec(t, `UPDATE provider_dependencies SET changed_at = '2026-01-01T00:00:00Z'`)
		before, start := f.revision(t), time.Now()
		f.setDependency(t, d.Name, step.met, step.note)
		got := list()
		equal(t, "providers", want, got, cmpopts.IgnoreFields(catalog.Dependency{}, "ChangedAt"))
		for i, now := range got[1].Dependencies {
			if isRecorded := now.ChangedAt != nil; isRecorded != (now.Note != "") {
				t.Errorf("%+v: changed at %v", step, now.ChangedAt)
			} else if isNew := isRecorded && now.ChangedAt.After(start.Add(-time.Minute)); isNew != (i == step.at) {
				t.Errorf("%+v: %s changed at %v", step, now.Name, now.ChangedAt)
			}
		}
		equal(t, "unmet by the provider", step.unmet, strings.Join(got[1].Unmet(), " "))
		equal(t, "unmet in its model", step.unmet, strings.Join(f.now(t, c).Model("m").Unmet, " "))
		if f.revision(t) <= before {
			t.Errorf("%+v: the revision did not increase", step)
		}
	}
	log := read[string](t, f, `
SELECT concat_ws(' ', actor, action, subject, detail) FROM audit_log
WHERE action <> 'catalog.import' ORDER BY id DESC LIMIT 1`)
	equal(t, "audit_log", `olga providers.unmet acme {"note": "still ended", "dependency": "contract"}`, log)

	const all = "configuration, secret, contract, legal_approval"
	state := f.state(t)
	for _, tt := range []struct{ provider, dependency, note, want string }{
		{"acme", "budget", "n", `unknown dependency "budget"; a provider depends on ` + all},
		{"acme", "", "n", `unknown dependency ""; a provider depends on ` + all},
		{"acme", "secret", " ", "a note is required: who checked the dependency, and how"},
		{"none", "secret", "n", `there is no provider "none"; see aiv providers list`},
	} {
		equal(t, "error", tt.want, fmt.Sprint(f.admin.SetDependency(t.Context(), tt.provider, tt.dependency, true, tt.note)))
	}
	equal(t, "row counts", state, f.state(t))
}

// TestAtReadsOnlyAfterAChange: each change has a new revision and a new snapshot; without a change the database is not
// read.
func TestAtReadsOnlyAfterAChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("m"))
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
	for _, d := range catalog.Dependencies {
		f.setDependency(t, d, true, "checked")
	}
	if m := f.now(t, c).Model("m"); !m.GroundedSearchAvailable() || len(m.Unmet) > 0 {
		t.Errorf("dependencies are still unmet: %v", m.Unmet)
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

// TestRevisionNeverRepeats: a change increases the revision, to the time in microseconds at least: a restored database
// does not repeat one.
func TestRevisionNeverRepeats(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme)
	began := f.revision(t)
	for _, before := range []int64{7, began, began + time.Hour.Microseconds()} {
		f.exec(t, `UPDATE catalog_revision SET revision = $1`, before)
		f.setDependency(t, "contract", true, "checked")
		if got := f.revision(t); got <= max(before, began) {
			t.Errorf("a change after revision %d at the time %d made revision %d", before, began, got)
		}
	}
}

// TestAtDuringOlderLoad: the catalog changes after a load has read the revision. The load returns what the catalog was
// then, and a caller that knows the later revision does not get its result.
func TestAtDuringOlderLoad(t *testing.T) {
	url := storetest.URL(t)
	open := func(conns int32) *fixture {
		pool := storetest.Open(t, url, store.OpenHot, conns)
		return &fixture{pool: pool, admin: &catalog.Admin{Pool: pool, Actor: "olga"}}
	}
	f := open(4)
	f.load(t, acme, model("m"))
	c := catalog.NewPatient(open(1).pool) // one connection; the first load prepares its statements
	f.now(t, c)
	f.load(t, model("m2"))

	// A load reads the revision and then waits for the models.
	lock, err := f.pool.Begin(t.Context())
	must(t, err)
	defer lock.Rollback(context.Background())
	_, err = lock.Exec(t.Context(), `LOCK TABLE models`)
	must(t, err)
	var wg sync.WaitGroup
	at := func(unmet int) {
		revision := f.revision(t)
		wg.Go(func() {
			s, err := c.At(t.Context(), revision)
			if err != nil || s.Revision != revision || len(s.Model("m").Unmet) != unmet {
				t.Errorf("At(%d) returned %+v, %v", revision, s, err)
			}
		})
	}
	at(len(catalog.Dependencies))
	storetest.UntilWaiting(t, f.pool, "relation")
	f.setDependency(t, "contract", true, "checked")
	at(len(catalog.Dependencies) - 1)
	storetest.Eventually(t, "the second caller waits for the load", func() bool { return waitingInAt() == 2 })
	must(t, lock.Rollback(t.Context()))
	wg.Wait()
}

// waitingInAt returns the number of goroutines of the process that are in Catalog.At. The test that uses it is
// not parallel.
func waitingInAt() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "aiv/catalog.(*Catalog).At(")
}
