package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/store"
)

// TestLeasesAreExtended: jobs that were claimed together share a lease, but not with those of another provider or model.
func TestLeasesAreExtended(t *testing.T) {
	run := &lockedRun{perModel: 10}
	worker := store.NewID()
	for _, l := range []lease{
		{first: 1, last: 3, provider: "p", worker: worker}, {first: 4, last: 6, provider: "q", worker: worker}, {first: 7, last: 9, provider: "q", worker: worker},
		{first: 10, last: 10, provider: "q", worker: worker}, {first: 11, last: 12, provider: "q", worker: worker},
	} {
		run.insert(&l)
	}
	var got [][2]int32
	for _, l := range run.leases {
		got = append(got, [2]int32{l.first, l.last})
	}
	if diff := cmp.Diff([][2]int32{{1, 3}, {4, 10}, {11, 12}}, got); diff != "" {
		t.Errorf("leases of jobs 1 to 3 at p, and at q of 4 to 10 of one model and 11 to 12 of the next (-want +got):\n%s", diff)
	}
}
