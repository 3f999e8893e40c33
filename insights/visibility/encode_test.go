package visibility

import (
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

func TestColumnsKeepFacts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		facts := randomFacts(r, r.IntN(100), 1+r.IntN(12))
		got, err := decodeFacts(encodeFacts(facts))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(facts, got); diff != "" {
			t.Fatalf("facts (-want +got):\n%s", diff)
		}
		repetitions := int32(1 + r.IntN(20))
		want := sumCells(facts, repetitions)
		var cells []cell
		if err := eachCell(encodeCells(want), func(c *cell) {
			kept := *c
			kept.brands = append([]brandSum(nil), c.brands...)
			cells = append(cells, kept)
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, cells, cmp.AllowUnexported(cell{}, brandSum{})); diff != "" {
			t.Fatalf("cells (-want +got):\n%s", diff)
		}
		sources, sums := sumSources(facts, repetitions, func(brand int32) bool { return brand == 1 })
		var gotSources []source
		var gotSums []sourceCell
		var d sourceDecoder
		if err := d.decode(encodeSources(sources, sums), func(encoded []encodedSource) {
			for _, s := range encoded {
				gotSources = append(gotSources, s.decode())
			}
		}, func(c *sourceCell) {
			kept := *c
			kept.sources = append([]sourceSum(nil), c.sources...)
			gotSums = append(gotSums, kept)
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sources, gotSources, cmp.AllowUnexported(source{})); diff != "" {
			t.Fatalf("sources (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(sums, gotSums, cmp.AllowUnexported(sourceCell{}, sourceSum{})); diff != "" {
			t.Fatalf("cells of sources (-want +got):\n%s", diff)
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
		_ = eachCell(column, func(*cell) {})
		_ = new(sourceDecoder).decode(column, func(encoded []encodedSource) {
			for _, s := range encoded {
				_ = s.decode()
			}
		}, func(*sourceCell) {})
	})
}
