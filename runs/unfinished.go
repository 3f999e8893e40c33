package runs

import (
	"sync"

	"aiv/store"
)

// unfinishedJobs remembers the accounts that had many unfinished jobs when this process last wrote a run of theirs.
type unfinishedJobs struct {
	mu   sync.Mutex
	jobs map[store.ID]int64
}

// rememberedFrom is how many unfinished jobs make an account worth remembering.
const rememberedFrom = DefaultMaxUnfinishedJobs / 10

func (u *unfinishedJobs) of(account store.ID) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.jobs[account]
}

func (u *unfinishedJobs) set(account store.ID, jobs int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if jobs < rememberedFrom {
		delete(u.jobs, account)
		return
	}
	if u.jobs == nil {
		u.jobs = make(map[store.ID]int64)
	}
	u.jobs[account] = jobs
}
