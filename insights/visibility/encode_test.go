package visibility

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// FuzzDecode checks that no column makes a decoder panic. That columns keep facts is a part of
// TestReadsEqualRecomputation.
func FuzzDecode(f *testing.F) {
	facts := someFacts(rand.New(rand.NewPCG(3, 4)), 40)
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

// someFacts returns facts: each of ten brands is in a third of the answers, and each answer cites three pages.
func someFacts(r *rand.Rand, n int) []Fact {
	facts := make([]Fact, n)
	for i := range facts {
		f := &facts[i]
		f.Ordinal, f.Known = int32(i+1), true
		position := int32(0)
		for n := range int32(10) {
			if r.IntN(3) == 0 {
				position++
				f.Brands = append(f.Brands, BrandFact{Brand: n + 1, Mentions: int32(1 + r.IntN(2)), Position: position, Citations: int32(r.IntN(2))})
			}
		}
		for range 3 {
			host := fmt.Sprintf("www.example-%03d.com", r.IntN(1000))
			f.Pages = append(f.Pages, Page{Key: fmt.Sprintf("%s/reviews/%06d", host, r.IntN(1500)), Host: host})
		}
	}
	return facts
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
