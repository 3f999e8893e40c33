package visibility

import (
	"strings"
	"testing"

	"aiv/insights/brands"
	"aiv/store"
)

// TestQuestionsInMemoryAreBounded: a question that would make the texts of all questions too long drops the others.
func TestQuestionsInMemoryAreBounded(t *testing.T) {
	c, b := NewCounter(Config{}), newAccountBrands(nil, brands.Version{})
	c.brandCache.put(store.NewID(), b, 1)
	for i := range 7 {
		c.question(b, strings.Repeat(string(rune('a'+i)), maxAsked/3-20))
	}
	if len(b.questions) != 1 {
		t.Errorf("%d questions are in memory, want 1, because each fourth drops three", len(b.questions))
	}
}

// TestCacheIsBoundedByBytes: a cache drops as many values as a new one needs, and no more.
func TestCacheIsBoundedByBytes(t *testing.T) {
	c := newCache[int, string](10)
	for key, bytes := range []int{4, 4, 2, 3, 3} {
		c.put(key, "value", bytes)
	}
	sum := 0
	for _, of := range c.entries {
		sum += of.bytes
	}
	if c.get(4) == "" || c.bytes != sum || sum < 7 || sum > 10 {
		t.Errorf("%d bytes are cached, counted as %d: %v", sum, c.bytes, c.entries)
	}
	c.put(4, "another", 9)
	if len(c.entries) != 1 || c.get(4) != "another" || c.bytes != 9 {
		t.Errorf("%d bytes are cached: %v", c.bytes, c.entries)
	}
}
