package schedules

import (
	"maps"
	"sync"

	"aiv/insights"
)

// Stats counts what a Scheduler has done since its process started.
type Stats struct {
	Occurrences     map[[2]string]uint64 // by status and code
	Alerts          map[[2]string]uint64 // by type and change
	Recommendations map[[2]string]uint64 // by type and change
}

// counts are the Stats of a Scheduler.
type counts struct {
	mu sync.Mutex
	Stats
}

// Stats returns the statistics.
func (s *Scheduler) Stats() Stats {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	return Stats{maps.Clone(s.counts.Occurrences), maps.Clone(s.counts.Alerts), maps.Clone(s.counts.Recommendations)}
}

func (s *Scheduler) count(done []Occurrence) {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	for i := range done {
		code := ""
		if done[i].Code != nil {
			code = *done[i].Code
		}
		add(&s.counts.Occurrences, [2]string{done[i].Status, code})
	}
}

func (s *Scheduler) countChanges(c *insights.Changes) {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	for _, a := range c.Alerts {
		add(&s.counts.Alerts, [2]string{a.Type, a.Change})
	}
	for _, r := range c.Recommendations {
		add(&s.counts.Recommendations, [2]string{r.Type, r.Change})
	}
}

func add(to *map[[2]string]uint64, key [2]string) {
	if *to == nil {
		*to = make(map[[2]string]uint64)
	}
	(*to)[key]++
}
