package runs

import (
	"maps"
	"math"
	"testing"

	"aiv/store"
)

// TestSmallAccountsAreForgotten: the memory for estimates is that of accounts with many unfinished jobs or runs in
// progress.
func TestSmallAccountsAreForgotten(t *testing.T) {
	var u unfinishedJobs
	small, large := store.ID{1}, store.ID{2}
	for account, jobs := range map[store.ID]int64{small: 10, large: rememberedFrom} {
		u.add(account, jobs)
		u.set(account, jobs)
		u.add(account, -jobs)
	}
	if _, ok := u.accounts[large]; !ok || len(u.accounts) != 1 {
		t.Errorf("%d accounts are remembered, want the large one", len(u.accounts))
	}
}

// TestMostOrdered: a month is locked unless it has no room for the smallest run of the account.
func TestMostOrdered(t *testing.T) {
	metered, unmetered := store.ID{1}, store.ID{2}
	var batch []*pending
	for _, jobs := range []int{5, 2, 7} {
		for account, quota := range map[store.ID]*int64{metered: new(int64(10)), unmetered: nil} {
			proposal := &Proposal{Orderer: Orderer{JobsPerMonth: quota}}
			batch = append(batch, &pending{request: &CreateRequest{Proposal: proposal}, run: &Run{AccountID: account, TotalJobs: jobs}})
		}
	}
	if got, want := maxUsed(batch), map[store.ID]int64{metered: 8, unmetered: math.MaxInt64}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
