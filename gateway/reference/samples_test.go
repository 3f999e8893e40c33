package reference_test

import (
	"go/format"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway/reference"
)

// TestGoSamples checks that the samples in Go are valid Go source, formatted by gofmt.
func TestGoSamples(t *testing.T) {
	samples := reference.GoSamples()
	if len(samples) < 8 {
		t.Errorf("%d samples in Go, want one for each of at least 8 operations", len(samples))
	}
	for operation, sample := range samples {
		want, err := format.Source([]byte(sample))
		if err != nil {
			t.Errorf("%s: %v", operation, err)
			continue
		}
		if diff := cmp.Diff(string(want), sample); diff != "" {
			t.Errorf("%s (-gofmt +sample):\n%s", operation, diff)
		}
	}
}
