package runs

import (
	"testing"

	"aiv/store"
)

// TestSmallAccountsAreForgotten: the memory for estimates is that of accounts with many unfinished jobs or runs in progress.
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
