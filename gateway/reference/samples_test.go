package reference_test

import (
	"go/format"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway/reference"
)

// TestGoSamples: the requests in Go are programs, written as gofmt writes them.
func TestGoSamples(t *testing.T) {
	samples := reference.GoSamples()
	if len(samples) < 8 {
		t.Errorf("there are %d samples in Go", len(samples))
	}
	for route, sample := range samples {
		want, err := format.Source([]byte(sample))
		if err != nil {
			t.Errorf("%s: %v", route, err)
			continue
		}
		if diff := cmp.Diff(string(want), sample); diff != "" {
			t.Errorf("%s (-gofmt +sample):\n%s", route, diff)
		}
	}
}
