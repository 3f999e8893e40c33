package visibility

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/insights/brands/match"
)

// randomFacts returns facts of consecutive jobs, some of which are left out.
func randomFacts(r *rand.Rand, jobs, brands int) []Fact {
	facts := []Fact{}
	for ordinal := range int32(jobs) {
		if r.IntN(10) == 0 {
			continue
		}
		f := Fact{Ordinal: ordinal + 1, Status: Status(max(0, r.IntN(10)-6)), Known: r.IntN(4) > 0}
		if r.IntN(3) > 0 {
			f.Version = new("m-" + strconv.Itoa(r.IntN(3)))
		}
		if f.Status == OK {
			position := int32(0)
			for b := range int32(brands) {
				if r.IntN(3) > 0 {
					continue
				}
				fact := BrandFact{Brand: b + 1, Citations: int32(r.IntN(3)), Flags: match.Flags(r.IntN(8))}
				if r.IntN(4) > 0 {
					position++
					fact.Mentions, fact.Position = int32(r.IntN(300)+1), position
				}
				f.Brands = append(f.Brands, fact)
			}
			for range r.IntN(5) {
				host := "h" + strconv.Itoa(r.IntN(9)) + ".example"
				p := Page{Key: host + "/" + strconv.Itoa(r.IntN(30)), Host: host, Owner: int32(r.IntN(3))}
				if r.IntN(5) == 0 {
					p.Host = "2001:db8::" + strconv.Itoa(r.IntN(9))
					p.Key = "[" + p.Host + "]:8080/"
				}
				if r.IntN(5) == 0 {
					p.Host = ""
				}
				f.Pages = append(f.Pages, p)
			}
		}
		facts = append(facts, f)
	}
	return facts
}

// columns are what the three columns of a chunk contain.
type columns struct {
	Facts       []Fact
	Cells       []cell
	Sources     []source
	SourceCells []sourceCell
}

func TestColumnsKeepFacts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		facts, repetitions := randomFacts(r, r.IntN(100), 1+r.IntN(12)), int32(1+r.IntN(20))
		want := columns{Facts: facts, Cells: sumCells(facts, repetitions)}
		want.Sources, want.SourceCells = sumSources(facts, repetitions, func(brand int32) bool { return brand == 1 })

		var got columns
		var err error
		got.Facts, err = decodeFacts(encodeFacts(facts))
		// Decoded cells are valid until the next one is decoded.
		errCells := eachCell(encodeCells(want.Cells), math.MaxInt32, func(c *cell) {
			got.Cells = append(got.Cells, *c)
			got.Cells[len(got.Cells)-1].brands = append([]brandSum(nil), c.brands...)
		})
		errSources := new(sourceDecoder).decode(encodeSources(want.Sources, want.SourceCells), func(encoded []encodedSource) {
			for _, s := range encoded {
				got.Sources = append(got.Sources, s.decode())
			}
		}, func(c *sourceCell) {
			got.SourceCells = append(got.SourceCells, *c)
			got.SourceCells[len(got.SourceCells)-1].sources = append([]sourceSum(nil), c.sources...)
		})
		all := cmp.AllowUnexported(cell{}, brandSum{}, source{}, sourceCell{}, sourceSum{})
		if diff := cmp.Diff(want, got, all); err != nil || errCells != nil || errSources != nil || diff != "" {
			t.Fatalf("%v, %v, %v (-want +got):\n%s", err, errCells, errSources, diff)
		}
	}
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	facts := randomFacts(r, 40, 5)
	f.Add(encodeFacts(facts))
	f.Add(encodeCells(sumCells(facts, 4)))
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
