package engines

import (
	"regexp"
	"strconv"
	"strings"

	"aiv/cmd/aiv/internal/work"
	"aiv/runs/answers"
)

// A response is the body of a response with the status 200.
type response struct {
	value
	body []byte
}

// A reading is what a response contains. Its texts are as the API sent them: answer.go bounds them.
type reading struct {
	text      string
	citations []citation
	queries   []string
	searched  *bool // nil: not known
	version   string
	usage     *work.Usage
	truncated bool

	fault *fault  // the response is no answer
	next  *prompt // the response asks for another request
}

// A citation is a page that the answer refers to. An empty title is none.
type citation struct{ url, title string }

// refuse returns a reading without an answer.
func refuse(f fault) reading { return reading{fault: &f} }

// usageOf returns a usage, or nil without the API's usage object.
func usageOf(from value, input, output, searches *int64) *work.Usage {
	if _, ok := from.any.(map[string]any); !ok {
		return nil
	}
	return &work.Usage{InputTokens: input, OutputTokens: output, Searches: searches}
}

// sum adds the counts that are there. It returns nil if none is, or one is no count.
func sum(counts ...value) *int64 {
	var total *int64
	for _, c := range counts {
		if c.any == nil {
			continue
		}
		n := c.count()
		if n == nil || *n > answers.MaxUsage {
			return nil
		}
		if total == nil {
			total = new(int64(0))
		}
		*total += *n
	}
	return total
}

// or returns a count if it is there, else another.
func or(c value, n int) *int64 {
	if found := c.count(); found != nil {
		return found
	}
	return new(int64(n))
}

// marks are references to sources by number, as in [2].
var marks = regexp.MustCompile(`\[([0-9]{1,9})\]`)

// marked returns the numbers that a text refers to, in the order of their first use.
func marked(text string) (numbers []int64) {
	seen := make(map[int64]bool)
	for _, m := range marks.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil && !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// blank reports whether nothing but white space is left.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
