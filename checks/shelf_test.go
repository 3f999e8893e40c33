package checks_test

import (
	"context"
	"slices"
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

// shelf is a small catalog.
type shelf struct {
	models        []catalog.Model
	methodologies []catalog.Methodology
	questions     map[string]question
	err           error // of a database that does not answer
}

type question struct {
	owner  store.ID
	status string
}

func (s *shelf) Model(id string) *catalog.Model {
	for i := range s.models {
		if s.models[i].ID == id {
			return &s.models[i]
		}
	}
	return nil
}

func (s *shelf) Methodology(measurementType string) *catalog.Methodology {
	for i := range s.methodologies {
		if slices.Contains(s.methodologies[i].MeasurementTypes, measurementType) {
			return &s.methodologies[i]
		}
	}
	return nil
}

func (s *shelf) QuestionStatus(_ context.Context, account store.ID, ids []string) ([]string, error) {
	status := make([]string, len(ids))
	for i, id := range ids {
		if q := s.questions[id]; q.owner == (store.ID{}) || q.owner == account {
			status[i] = q.status
		}
	}
	return status, s.err
}

var ours, theirs = store.ID{1}, store.ID{2}

// standard is a shelf on which the proposal of propose finds all that it needs.
func standard() *shelf {
	model := func(id string, change func(*catalog.Model)) catalog.Model {
		m := catalog.Model{ID: id, Provider: "acme", Status: "active", MeasurementTypes: []string{"grounded", "plain"}, GroundedSearch: true}
		change(&m)
		return m
	}
	return &shelf{
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
		methodologies: []catalog.Methodology{
			{Version: "AIVM-1.0", Status: "active", MeasurementTypes: []string{"grounded"}, MaxRepetitions: 20, MaxJobs: 100},
			{Version: "AIVM-2.0", Status: "active", MeasurementTypes: []string{"plain"}, MaxRepetitions: 1, MaxJobs: 1},
		},
		questions: map[string]question{
			"shared": {status: "active"}, "ours": {ours, "active"}, "theirs": {theirs, "active"},
			"archived": {status: "archived"}, "their archived": {theirs, "archived"},
		},
	}
}

// propose is a proposal that everything speaks for, but for the change.
func propose(change func(*checks.Proposal)) *checks.Proposal {
	p := &checks.Proposal{
		Proposal: &runs.Proposal{
			Credential: &auth.Credential{AccountID: ours, Plan: auth.Plan{Code: "pro", Features: []string{"api_access"}}},
			ModelIDs:   []string{"everywhere"}, QuestionIDs: []string{"shared"}, Repetitions: 1, MeasurementType: "grounded",
			Locale: "it-IT", Country: "IT", Language: "it",
		},
		Catalog: standard(),
	}
	if change != nil {
		change(p)
	}
	return p
}

// row is a proposal and what a check has against it.
type row struct {
	name   string
	change func(*checks.Proposal)
	want   []runs.Fault
}

func checkTable(t *testing.T, check checks.Check, rows []row) {
	t.Helper()
	for _, r := range rows {
		got, err := check.Check(t.Context(), propose(r.change))
		if err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.name, diff)
		}
	}
}
