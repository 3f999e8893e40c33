package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"aiv/catalog"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestPatternCoversModels(t *testing.T) {
	for _, test := range []struct {
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
		m := catalog.Model{Countries: test.countries, Languages: test.languages}
		country, language := m.Covers(test.country, test.language)
		if country != test.wantCountry || language != test.want {
			t.Errorf("%v %v of %s %s: got %v, %v, want %v, %v", test.countries, test.languages, test.country, test.language,
				country, language, test.wantCountry, test.want)
		}
	}
}

func TestSnapshotFindsModelsAndQuestions(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme, model("b"), methodology("AIVM-0.9", "retired", `"grounded","plain"`), methodology("AIVM-2.0", "active", `"plain","other"`))
	f.load(t, model("a"))
	snapshot := f.now(t, catalog.New(f.pool))
	want := catalog.Model{
		ID: "a", Name: "One", Provider: "acme", ProviderModel: "one-1", Status: "active", MeasurementTypes: []string{"grounded"},
		Languages: []string{"it", "de-AT"}, GroundedSearch: true, Unmet: catalog.Dependencies,
	}
	second := want
	second.ID = "b"
	if diff := cmp.Diff([]catalog.Model{want, second}, snapshot.Models); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&second, snapshot.Model("b")); diff != "" {
		t.Errorf("model b (-want +got):\n%s", diff)
	}
	if m := snapshot.Model("B"); m != nil {
		t.Errorf("model B: got %v", m)
	}
	if !want.Measures("grounded") || want.Measures("plain") {
		t.Error("Measures is wrong for grounded or plain")
	}
	for measurementType, want := range map[string]string{"grounded": "AIVM-1.0", "plain": "AIVM-2.0", "other": "AIVM-2.0", "none": "", "": ""} {
		got := ""
		if m := snapshot.Methodology(measurementType); m != nil {
			got = m.Version
		}
		if got != want {
			t.Errorf("methodology of %q: got %q, want %q", measurementType, got, want)
		}
	}
}

// TestListPageBeginsBehindAMissingModel: a page begins after its position, also if no model is there any more, and has one model more than its
// limit.
func TestListPageBeginsBehindAMissingModel(t *testing.T) {
	t.Parallel()
	s := catalog.Snapshot{Models: []catalog.Model{
		{ID: "a", Provider: "p", Status: "active", MeasurementTypes: []string{"grounded"}, GroundedSearch: true},
		{ID: "c", Provider: "q", Status: "active", MeasurementTypes: []string{"plain"}, GroundedSearch: true, Unmet: []string{"secret"}},
		{ID: "e", Provider: "p", Status: "disabled", MeasurementTypes: []string{"plain", "grounded"}},
	}}
	for _, test := range []struct {
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
		page := store.Page{Limit: test.limit}
		if test.after != "" {
			page.After = &store.Position{Text: test.after}
		}
		got := ""
		for _, m := range s.List(test.filter, page) {
			got += m.ID
		}
		if got != test.want {
			t.Errorf("%+v after %q, limit %d: got %q, want %q", test.filter, test.after, test.limit, got, test.want)
		}
	}
}

// TestQuestionPages: reading page by page returns each question that the account can use and the filter selects once,
// ordered by id.
func TestQuestionPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tagged := strings.NewReplacer(`"a","b"`, `"c"`, "shoes", "hats", `"language":"it"`, `"language":"de"`, `"IT"`, `"AT"`)
	f.load(t, question("e", store.ID{}, "active"), question("d", f.ours, "archived"), tagged.Replace(question("c", store.ID{}, "active")),
		question("b", f.theirs, "active"), tagged.Replace(question("a", f.ours, "active")), question("f", f.ours, "active"))
	for _, test := range []struct {
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
				found, err := catalog.Questions(t.Context(), f.pool, f.ours, test.filter, page)
				must(t, err)
				more = len(found) > limit
				for _, q := range found[:min(limit, len(found))] {
					got += q.ID
					page.After = &store.Position{Text: q.ID}
				}
			}
			if got != test.want {
				t.Errorf("%+v by %d: got %q, want %q", test.filter, limit, got, test.want)
			}
		}
	}
}

func TestQuestionStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.load(t, question("shared", store.ID{}, "active"), question("old", store.ID{}, "archived"), question("ours", f.ours, "active"),
		question("ours/old", f.ours, "archived"), question("theirs", f.theirs, "active"), question("theirs/old", f.theirs, "archived"))
	c := catalog.New(f.pool)
	snapshot := f.now(t, c)
	ids := []string{"ours/old", "none", "theirs", "shared", "theirs/old", "old", "shared", "", "ours", "SHARED"}
	for _, test := range []struct {
		account store.ID
		want    []string
	}{
		{f.ours, []string{"archived", "", "", "active", "", "archived", "active", "", "active", ""}},
		{f.theirs, []string{"", "", "active", "active", "archived", "archived", "active", "", "", ""}},
		{store.NewID(), []string{"", "", "", "active", "", "archived", "active", "", "", ""}},
		{f.ours, []string{"archived", "", "", "active", "", "archived", "active", "", "active", ""}}, // from the cache
	} {
		got, err := snapshot.QuestionStatus(t.Context(), test.account, ids)
		must(t, err)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	// A new revision has the changes, although the previous snapshot cached the status or found no question.
	f.load(t, question("shared", store.ID{}, "archived"), question("none", f.ours, "active"))
	got, err := f.now(t, c).QuestionStatus(t.Context(), f.ours, []string{"shared", "none", "ours"})
	must(t, err)
	if diff := cmp.Diff([]string{"archived", "active", "active"}, got); diff != "" {
		t.Errorf("the next revision (-want +got):\n%s", diff)
	}
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

// TestConcurrentQuestionStatus is for the race detector.
func TestConcurrentQuestionStatus(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var lines, ids []string
	for i := range 500 {
		ids = append(ids, fmt.Sprintf("q%d", i))
		lines = append(lines, question(ids[i], store.ID{}, "active"))
	}
	f.load(t, lines...)
	snapshot := f.now(t, catalog.New(f.pool))
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			some := slices.Concat(ids[i*10:], ids[:i*10])[:300]
			got, err := snapshot.QuestionStatus(t.Context(), f.ours, some)
			if err != nil || strings.Join(got, "") != strings.Repeat("active", 300) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	wg.Wait()
}

// TestValuesMatchConstraints: the tables accept exactly the values that the package declares.
func TestValuesMatchConstraints(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	for constraint, want := range map[string][]string{
		"models_status_check": catalog.ModelStatuses, "questions_status_check": catalog.QuestionStatuses,
		"methodologies_status_check": catalog.MethodologyStatuses, "provider_dependencies_dependency_check": catalog.Dependencies,
		"models_id_check": {catalog.IDPattern().String()}, "questions_id_check": {catalog.IDPattern().String()},
		"methodologies_version_check": {catalog.MethodologyPattern().String()}, "providers_code_check": {catalog.ProviderPattern().String()},
	} {
		var got []string
		err := pool.QueryRow(t.Context(), `
SELECT array_agg(m[1])
FROM (SELECT oid FROM pg_constraint WHERE conname = $1 ORDER BY oid LIMIT 1) c, -- those of the shards on a cluster have the same name
  regexp_matches(pg_get_constraintdef(oid), '''([^'']+)''::', 'g') m`, constraint).Scan(&got)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", constraint, err, diff)
		}
	}
}
