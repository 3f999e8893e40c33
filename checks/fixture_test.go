package checks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aiv/auth"
	"aiv/catalog"
	"aiv/checks"
	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fakeCatalog is a checks.Catalog in memory.
type fakeCatalog struct {
	models    []catalog.Model
	questions map[string]question
	err       error // returned by QuestionStatus
}

type question struct {
	owner  store.ID // zero: shared by all accounts
	status string
}

func (c *fakeCatalog) Model(id string) *catalog.Model {
	for i := range c.models {
		if c.models[i].ID == id {
			return &c.models[i]
		}
	}
	return nil
}

func (c *fakeCatalog) QuestionStatus(_ context.Context, account store.ID, ids []string) ([]string, error) {
	status := make([]string, len(ids))
	for i, id := range ids {
		if q := c.questions[id]; q.owner == (store.ID{}) || q.owner == account {
			status[i] = q.status
		}
	}
	return status, c.err
}

var ours, theirs = store.ID{1}, store.ID{2}

// newCatalog returns a catalog that allows the proposal of propose.
func newCatalog() *fakeCatalog {
	model := func(id string, change func(*catalog.Model)) catalog.Model {
		m := catalog.Model{ID: id, Provider: "acme", Status: "active", MeasurementTypes: []string{"grounded", "plain"}, GroundedSearch: true}
		change(&m)
		return m
	}
	return &fakeCatalog{
		models: []catalog.Model{
			model("everywhere", func(*catalog.Model) {}),
			model("italy", func(m *catalog.Model) { m.Countries, m.Languages = []string{"IT", "SM"}, []string{"it"} }),
			model("rome", func(m *catalog.Model) { m.Countries, m.Languages = []string{"IT"}, []string{"it-IT"} }),
			model("nowhere", func(m *catalog.Model) { m.Countries, m.Languages = []string{}, []string{} }),
			model("old", func(m *catalog.Model) { m.Status = "deprecated" }),
			model("off", func(m *catalog.Model) { m.Status = "disabled" }),
			model("plain", func(m *catalog.Model) { m.MeasurementTypes = []string{"plain"} }),
			model("offline", func(m *catalog.Model) { m.GroundedSearch = false }),
			model("pending", func(m *catalog.Model) { m.Unmet = []string{"contract", "legal_approval"} }),
			model("offline and pending", func(m *catalog.Model) { m.GroundedSearch, m.Unmet = false, []string{"secret"} }),
		},
		questions: map[string]question{
			"shared": {status: "active"}, "ours": {ours, "active"}, "theirs": {theirs, "active"},
			"archived": {status: "archived"}, "their archived": {theirs, "archived"},
		},
	}
}

// methodologies has the active methodology of each measurement type.
var methodologies = []catalog.Methodology{
	{Version: "AIVM-1.0", Status: "active", MeasurementTypes: []string{"grounded"}, MaxRepetitions: 20, MaxJobs: 100},
	{Version: "AIVM-2.0", Status: "active", MeasurementTypes: []string{"plain"}, MaxRepetitions: 1, MaxJobs: 1},
}

// propose returns a proposal that passes all checks, changed by change, with the methodology of its measurement type.
func propose(change func(*checks.Proposal)) *checks.Proposal {
	p := &checks.Proposal{
		Proposal: &runs.Proposal{
			Orderer:  runs.Orderer{AccountID: ours, Plan: auth.Plan{Code: "pro", Features: []string{"api_access"}}},
			ModelIDs: []string{"everywhere"}, QuestionIDs: []string{"shared"}, Repetitions: 1, MeasurementType: "grounded",
			Locale: "it-IT", Country: "IT", Language: "it",
		},
		Catalog: newCatalog(),
	}
	if change != nil {
		change(p)
	}
	covers := func(m catalog.Methodology) bool { return slices.Contains(m.MeasurementTypes, p.MeasurementType) }
	if i := slices.IndexFunc(methodologies, covers); i >= 0 {
		p.Methodology = &methodologies[i]
	}
	return p
}

// at returns a function that makes faults of a code at the elements of a list.
func at(list, code, title string) func(i int, detail string) runs.Fault {
	return func(i int, detail string) runs.Fault {
		return runs.Fault{Code: code, Title: title, Pointer: fmt.Sprintf("/%s/%d", list, i), Detail: detail}
	}
}

// row is a proposal and the faults that a check must find in it.
type row struct {
	name   string
	change func(*checks.Proposal)
	want   []runs.Fault
}

func checkTable(t *testing.T, check checks.Check, rows []row) {
	t.Helper()
	for _, r := range rows {
		got, err := check.Run(t.Context(), propose(r.change))
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.name, diff)
		}
		for _, f := range got {
			if sentence := strings.HasSuffix(f.Detail, "."); sentence == (f.Pointer != "") {
				t.Errorf("%s: the detail %q must be a phrase with a pointer, and a sentence without one", r.name, f.Detail)
			}
		}
	}
}
