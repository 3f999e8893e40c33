package jobs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"aiv/store"
)

// The states of a lease.
const (
	stateHeld    = "held"    // a worker has the jobs until the lease ends
	stateWaiting = "waiting" // for another try, until a time
	stateReady   = "ready"   // to be claimed again
)

// A lease is a row of job_leases: the jobs first to last of a run, in one state.
type lease struct {
	account, run store.ID
	first, last  int32
	provider     string
	created      time.Time // of the run
	state        string
	attempt      int16     // of the latest claim, from 1
	tries        int16     // attempts that count against maxTries: retries and expired leases
	until        time.Time // end of a held lease, or of the wait of a waiting one
	startedAt    time.Time // of the first attempt
	worker       store.ID  // of a held lease; otherwise the latest one or zero
}

func (l *lease) jobs() int32 { return l.last - l.first + 1 }

// leaseKeys are keys of rows of job_leases, as arguments of a statement.
type leaseKeys struct {
	accounts, runs []store.ID
	ordinals       []int32
}

func (k *leaseKeys) add(account, run store.ID, ordinal int32) {
	k.accounts, k.runs, k.ordinals = append(k.accounts, account), append(k.runs, run), append(k.ordinals, ordinal)
}

// leaseRows are rows of job_leases, as arguments of putLeases.
type leaseRows struct {
	accounts, runs, workers []store.ID
	first, last             []int32
	providers, states       []string
	created, until, started []time.Time
	attempts, tries         []int16
}

func (r *leaseRows) add(l *lease) {
	r.accounts, r.runs, r.workers = append(r.accounts, l.account), append(r.runs, l.run), append(r.workers, l.worker)
	r.first, r.last = append(r.first, l.first), append(r.last, l.last)
	r.providers, r.states = append(r.providers, l.provider), append(r.states, l.state)
	r.created, r.until, r.started = append(r.created, l.created), append(r.until, l.until), append(r.started, l.startedAt)
	r.attempts, r.tries = append(r.attempts, l.attempt), append(r.tries, l.tries)
}

// args returns the columns in the order of the parameters of writeLeases.
func (r *leaseRows) args() []any {
	return []any{r.accounts, r.runs, r.first, r.last, r.providers, r.created, r.states, r.attempts, r.tries, r.until, r.started, r.workers}
}

// holds are changes of the jobs in rows of job_holds.
type holds map[hold]int32

type hold struct {
	runKey
	provider string
}

func (h holds) add(account, run store.ID, provider string, jobs int32) {
	h[hold{runKey{account, run}, provider}] += jobs
}

// args returns the changes as columns, in the order of keys, in which their rows are locked.
func (h holds) args() []any {
	var accounts, runs []store.ID
	var providers []string
	var jobs []int32
	for _, k := range slices.SortedFunc(maps.Keys(h), func(a, b hold) int {
		return cmp.Or(compareRuns(a.runKey, b.runKey), cmp.Compare(a.provider, b.provider))
	}) {
		accounts, runs, providers, jobs = append(accounts, k.account), append(runs, k.run), append(providers, k.provider), append(jobs, h[k])
	}
	return []any{accounts, runs, providers, jobs}
}
