package visibility

import (
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzDecode checks that no column makes a decoder panic. That columns keep facts is a part of
// TestReadsEqualRecomputation.
func FuzzDecode(f *testing.F) {
	facts := benchFacts(rand.New(rand.NewPCG(3, 4)), 1)[:40]
	f.Add(encodeFacts(facts))
	f.Add(encodeCells(sumCells(facts, 4)))
	f.Add(encodeSources(sumSources(facts, 4, func(brand int32) bool { return brand == 1 })))
	f.Fuzz(func(_ *testing.T, column []byte) {
		_, _ = decodeFacts(column)
		_ = eachCell(column, math.MaxInt32, func(*cell) {})
		_ = new(sourceDecoder).decode(column, func(encoded []encodedSource) {
			for _, s := range encoded {
				_ = s.decode()
			}
		}, func(*sourceCell) {})
	})
}

// TestCacheIsBoundedByBytes: a cache drops as many values as a new one needs, and no more.
func TestCacheIsBoundedByBytes(t *testing.T) {
	c := newCache[int, string](10)
	for key, bytes := range []int{4, 4, 2, 3, 9} {
		c.put(key, "value", bytes)
		sum := 0
		for _, of := range c.entries {
			sum += of.bytes
		}
		if least := []int{4, 8, 10, 7, 9}[key]; c.get(key) == "" || c.bytes != sum || sum < least || sum > 10 {
			t.Errorf("%d bytes are cached, counted as %d: %v", sum, c.bytes, c.entries)
		}
	}
}
