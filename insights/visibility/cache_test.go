package visibility

import (
	"runtime"
	"strings"
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

// TestBrandBytes: the estimate is near the heap that brands take, also for domains, and where a character has three bytes.
func TestBrandBytes(t *testing.T) {
	texts := func(prefix string, first rune) (all []string) {
		for i := range rune(20) {
			all = append(all, prefix+strings.Repeat(string(first+i), 100))
		}
		return all
	}
	for _, of := range []brands.Brand{{Aliases: texts("", 'a')}, {Aliases: texts("", '一')}, {Domains: texts("github.com/", 'a')}} {
		of.Name = "Kovalt"
		all := make([]*accountBrands, 200) // so many that nothing else counts
		before := heapBytes()
		for i := range all {
			all[i] = newAccountBrands([]brands.Brand{of}, brands.Version{})
		}
		taken := (heapBytes() - before) / len(all)
		if got := brandBytes([]brands.Brand{of}); got < taken*3/4 || got > 2*taken {
			t.Errorf("%.20q: %d bytes are estimated, %d are taken", append(of.Aliases, of.Domains...)[0], got, taken)
		}
		runtime.KeepAlive(all)
	}
}

func heapBytes() int {
	runtime.GC()
	runtime.GC() // buffers that are kept outlive one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
