// Package answers defines the answer of a model, and the form in which it is stored.
//
// A worker reports an Answer: gateway/worker reads and bounds it, and package jobs stores it with the result of its
// job. Package results reads it, and gateway encodes the public document. Only this package knows the stored form. It
// owns no table.
package answers

import "time"

// Bounds of an answer that a worker reports. Lengths are in characters, except MaxText.
const (
	MaxText          = 256 << 10 // bytes
	MaxCitations     = 100
	MaxURL           = 2048
	MaxTitle         = 512
	MaxSearchQueries = 50
	MaxSearchQuery   = 512
	MaxModelVersion  = 128
	MaxUsage         = 1_000_000_000 // of each number
)

// An Answer is what a model answered to the question of a job. Its texts are valid UTF-8 without U+0000.
type Answer struct {
	Text          string
	Citations     []Citation
	SearchQueries []string
	ModelVersion  *string // as the provider reported it; nil: not known
	AnsweredAt    time.Time
	Searched      *bool  // whether the model searched before it answered; nil: not known
	Truncated     bool   // the answer was cut, by the token limit or by the end of a stream
	Usage         *Usage // nil: not reported
}

// A Citation is a source that an answer cites.
type Citation struct {
	Position int // in the answer's citations, from 1
	URL      string
	Domain   string  // the host of the URL
	Title    *string // nil: none was reported
}

// Usage is what the provider charged for an answer. A nil number is not known.
type Usage struct {
	InputTokens, OutputTokens, Searches *int64
}

// Size returns the length of the answer's texts in bytes.
func (a *Answer) Size() int {
	n := len(a.Text)
	for i := range a.Citations {
		c := &a.Citations[i]
		n += len(c.URL) + len(c.Domain)
		if c.Title != nil {
			n += len(*c.Title)
		}
	}
	for _, q := range a.SearchQueries {
		n += len(q)
	}
	if a.ModelVersion != nil {
		n += len(*a.ModelVersion)
	}
	return n
}
