package visibility

import "aiv/insights/brands/match"

// A Fact is what is stored about one job that ended with an answer or an error.
type Fact struct {
	Ordinal int32
	Status  Status
	// The citation rate of a brand is over answers with known sources only.
	Known   bool    // the answer's sources are known
	Version *string // the served model, as the worker reported it

	// Of an answer with the status OK:
	Brands []BrandFact // brands that occur, flagged or not, or are cited, by number
	Pages  []Page      // the different pages that it cites, in their order
}

// A Status says whether an answer is counted, or why it is not.
type Status uint8

// The statuses of jobs that have ended. Only answers with the status OK are counted.
const (
	OK Status = iota
	Empty
	Truncated
	Failed
)

// A BrandFact is what an answer shows of one brand. Brands are numbered, so that facts take little space and outlive
// a change of the brand's name.
type BrandFact struct {
	Brand     int32 // the brand's number in its account
	Mentions  int32 // that are counted; 0: not mentioned
	Position  int32 // among the brands mentioned, from 1; 0: not mentioned
	Citations int32 // pages of the brand among the answer's pages
	Flags     match.Flags
}

// A Page is a page that an answer cites.
type Page struct {
	Key   string // its page key
	Host  string // of the key or, behind an opaque redirector, of the title; empty: unknown
	Owner int32  // the number of the brand that owns it; 0: none
}

// isGap reports whether an answer mentions a competitor and no own brand.
func (f *Fact) isGap(isOwn func(brand int32) bool) bool {
	competitor := false
	for i := range f.Brands {
		switch b := &f.Brands[i]; {
		case b.Mentions == 0:
		case isOwn(b.Brand):
			return false
		default:
			competitor = true
		}
	}
	return competitor
}
