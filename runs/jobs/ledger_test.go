package jobs

import (
	"testing"

	"aiv/store"
)

// TestLeasesAreExtended: jobs that were claimed together share a lease, but not with those of another provider.
func TestLeasesAreExtended(t *testing.T) {
	run := &runState{}
	worker := store.NewID()
	for _, l := range []lease{
		{first: 1, last: 3, provider: "p", worker: worker}, {first: 4, last: 6, provider: "q", worker: worker}, {first: 7, last: 9, provider: "q", worker: worker},
	} {
		run.insert(&l)
	}
	if len(run.leases) != 2 || run.leases[0].last != 3 || run.leases[1].first != 4 || run.leases[1].last != 9 {
		t.Errorf("leases of jobs 1 to 3 at p and 4 to 9 at q became %+v", run.leases)
	}
}
