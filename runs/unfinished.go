package runs

import (
	"sync"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// unfinishedJobs estimates the unfinished jobs of accounts, for the default bound. It does not know what other
// processes have written since this one last wrote a run of the account.
type unfinishedJobs struct {
	mu       sync.Mutex
	accounts map[store.ID]estimate
}

// An estimate describes the unfinished jobs of one account.
type estimate struct {
	known   int64 // of the current month, when this process last wrote a run of the account
	writing int64 // of runs that this process is writing
}

// Accounts with fewer unfinished jobs than rememberedFrom are not tracked.
const rememberedFrom = DefaultMaxUnfinishedJobs / 10

// add adds the jobs of a run that is about to be written and returns the estimate; a negative number removes them.
func (u *unfinishedJobs) add(account store.ID, jobs int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.accounts[account]
	n.writing += jobs
	u.put(account, n)
	return n.known + n.writing
}

// read reads accounts and their unfinished jobs from the rows of addOrdered.
func (u *unfinishedJobs) read(rows pgx.Rows) error {
	var account store.ID
	var jobs int64
	_, err := pgx.ForEachRow(rows, []any{&account, &jobs}, func() error {
		u.set(account, jobs)
		return nil
	})
	return err
}

// set notes what the database has counted for an account.
func (u *unfinishedJobs) set(account store.ID, jobs int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.accounts[account]
	n.known = jobs
	u.put(account, n)
}

// put stores an estimate, or forgets an account that is far from the bound. u.mu is locked.
func (u *unfinishedJobs) put(account store.ID, n estimate) {
	if n.known < rememberedFrom && n.writing == 0 {
		delete(u.accounts, account)
		return
	}
	if u.accounts == nil {
		u.accounts = make(map[store.ID]estimate)
	}
	u.accounts[account] = n
}
