package visibility

import (
	"cmp"
	"slices"
	"strings"
)

// servedModels counts ok answers by model and version.
type servedModels struct {
	counts map[servedModelKey]*int64

	// Most answers are of the same model and version as those before.
	model   string
	version *string
	count   *int64
}

// A servedModelKey is a Served as a key; known is false if the version was not reported.
type servedModelKey struct {
	model, version string
	known          bool
}

func newServedModels() *servedModels { return &servedModels{counts: make(map[servedModelKey]*int64)} }

// add counts ok answers. It looks up a key only when the model or version changes.
func (s *servedModels) add(model string, version *string, answers int64) {
	if s.count == nil || s.model != model || !equalVersions(s.version, version) {
		key := servedModelKey{model: model}
		if version != nil {
			key.version, key.known = *version, true
		}
		if s.counts[key] == nil {
			s.counts[key] = new(int64)
		}
		s.model, s.version, s.count = model, version, s.counts[key]
	}
	*s.count += answers
}

// maxServed is the maximum number of served models that a response lists.
const maxServed = 50

// list returns the models with the most answers.
func (s *servedModels) list() []Served {
	all := make([]Served, 0, len(s.counts))
	for key, n := range s.counts {
		m := Served{Model: key.model, Answers: *n}
		if key.known {
			m.Version = &key.version
		}
		all = append(all, m)
	}
	// A version that was not reported comes last.
	slices.SortFunc(all, func(a, b Served) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Model, b.Model), compareAbsentLast(a.Version, b.Version, strings.Compare))
	})
	return all[:min(len(all), maxServed)]
}
