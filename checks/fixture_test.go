package checks_test

import (
	"context"
	"strings"
	"testing"

	"aiv/auth"
	"aiv/catalog"
	"aiv/checks"
	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// fakeCatalog is a checks.Catalog in memory.
type fakeCatalog struct {
	models    map[string]*catalog.Model
	questions map[string]string // the status of those that ours can use
}

// ours is the account of the proposals.
var ours = store.ID{1}

func (c *fakeCatalog) Model(id string) *catalog.Model { return c.models[id] }

func (c *fakeCatalog) QuestionStatus(_ context.Context, account store.ID, ids []string) ([]string, error) {
	status := make([]string, len(ids))
	for i, id := range ids {
		if account == ours {
			status[i] = c.questions[id]
		}
	}
	return status, nil
}

// newCatalog returns a catalog that allows the proposal of propose.
func newCatalog() *fakeCatalog {
	types := []string{"grounded", "plain"}
	models := map[string]*catalog.Model{
		"everywhere":          {Status: "active", GroundedSearch: true},
		"italy":               {Status: "active", GroundedSearch: true, Countries: []string{"IT", "SM"}, Languages: []string{"it"}},
		"rome":                {Status: "active", GroundedSearch: true, Countries: []string{"IT"}, Languages: []string{"it-IT"}},
		"old":                 {Status: "deprecated", GroundedSearch: true},
		"off":                 {Status: "disabled", GroundedSearch: true},
		"offline":             {Status: "active"},
		"pending":             {Status: "active", GroundedSearch: true, Unmet: []string{"contract", "legal_approval"}},
		"offline and pending": {Status: "active", Unmet: []string{"secret"}},
	}
	for id, m := range models {
		m.ID, m.Provider, m.MeasurementTypes = id, "acme", types
	}
	return &fakeCatalog{models: models, questions: map[string]string{"shared": "active", "ours": "active", "archived": "archived"}}
}

// propose returns a proposal that passes all checks, changed by change.
func propose(change func(*checks.Proposal)) *checks.Proposal {
	p := &checks.Proposal{
		Proposal: &runs.Proposal{
			Orderer:  runs.Orderer{AccountID: ours, Plan: auth.Plan{Code: "pro", Features: []string{"api_access"}}},
			ModelIDs: []string{"everywhere"}, QuestionIDs: []string{"shared"}, Repetitions: 1, MeasurementType: "grounded",
			Locale: "it-IT", Country: "IT", Language: "it",
		},
		Catalog:     newCatalog(),
		Methodology: &catalog.Methodology{Version: "AIVM-1.0", MaxRepetitions: 20, MaxJobs: 100},
	}
	if change != nil {
		change(p)
	}
	return p
}

// row is a proposal and the faults that a check must find in it, such as "unknown_model /model_ids/0: there is no such
// model". Their titles are in the golden files.
type row struct {
	name   string
	change func(*checks.Proposal)
	want   []string
}

func checkTable(t *testing.T, check checks.Check, rows []row) {
	t.Helper()
	for _, r := range rows {
		faults, err := check.Run(t.Context(), propose(r.change))
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		var got []string
		for _, f := range faults {
			got = append(got, strings.TrimSpace(f.Code+" "+f.Pointer)+": "+f.Detail)
		}
		storetest.Equal(t, r.want, got, r.name)
	}
}
