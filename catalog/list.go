package catalog

import (
	"slices"
	"strings"

	"aiv/store"
)

// A ModelFilter selects models. Empty members select all.
type ModelFilter struct {
	Provider        string
	Status          string
	MeasurementType string
	GroundedSearch  *bool // whether grounded search is available
}

// List returns a page of the models, ordered by id, and one more model if there is one.
func (s *Snapshot) List(f ModelFilter, page store.Page) []Model {
	from := 0
	if page.After != nil {
		var exact bool
		from, exact = slices.BinarySearchFunc(s.Models, page.After.Text, func(m Model, id string) int { return strings.Compare(m.ID, id) })
		if exact {
			from++
		}
	}
	var found []Model
	for i := from; i < len(s.Models) && len(found) <= page.Limit; i++ {
		if m := &s.Models[i]; f.matches(m) {
			found = append(found, *m)
		}
	}
	return found
}

func (f *ModelFilter) matches(m *Model) bool {
	return (f.Provider == "" || f.Provider == m.Provider) && (f.Status == "" || f.Status == m.Status) &&
		(f.MeasurementType == "" || m.Measures(f.MeasurementType)) &&
		(f.GroundedSearch == nil || *f.GroundedSearch == m.GroundedSearchAvailable())
}
