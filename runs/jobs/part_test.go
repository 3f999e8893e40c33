package jobs

import (
	"strings"
	"testing"

	"aiv/runs/answers"
)

// TestSettlementsAreSplit: settlements are split into parts that fit into half of a batch, in order and without loss.
func TestSettlementsAreSplit(t *testing.T) {
	const half = maxBatchWeight / 2
	for _, test := range []struct {
		name  string
		sizes []int // of answers, in KiB
		want  []int
	}{
		{"none is large", make([]int, 500), []int{500}},
		{"one is larger than a part", []int{0, half * 2, 0, 0}, []int{1, 1, 2}},
		{"parts are full", []int{half/2 - 1, half/2 - 1, half/2 - 1, half / 2, 0}, []int{2, 1, 2}},
	} {
		var settlements []Settlement
		for _, size := range test.sizes {
			settlements = append(settlements, Settlement{Answer: &answers.Answer{Text: strings.Repeat("x", size<<10)}})
		}
		for _, want := range test.want {
			n := part(settlements)
			if n != want {
				t.Errorf("%s: a part of %d, want %d", test.name, n, want)
				break
			}
			settlements = settlements[n:]
		}
		if len(settlements) > 0 {
			t.Errorf("%s: %d are left", test.name, len(settlements))
		}
	}
}
