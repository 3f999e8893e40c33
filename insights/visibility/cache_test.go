package visibility

import (
	"testing"

	"aiv/insights/brands"
	"aiv/store"
)

// TestQuestionsOfRunsAreCachedOnce: a question that runs repeat is in memory once.
func TestQuestionsOfRunsAreCachedOnce(t *testing.T) {
	b := newAccountBrands([]brands.Brand{{Number: 1, Kind: brands.Own, Name: "Kovalt"}}, brands.Version{})
	jobs := []Job{{Ordinal: 1, Answer: &Answer{Text: "Kovalt."}}, {Ordinal: 2, Answer: &Answer{Text: "Ostrel."}}}
	for range 3 {
		new(Counter).count(b, &countedRun{id: store.NewID(), repetitions: 1, texts: []string{"Which one?", "And now?"}}, jobs)
	}
	if len(b.questions) != 2 {
		t.Errorf("%d questions are in memory, want 2", len(b.questions))
	}
}
