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
