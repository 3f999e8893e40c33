package jobs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"time"

	"aiv/runs/answers"
	"aiv/store"
)

// Limits of attempts, and default waits.
const (
	maxTries    = 4  // retries and expired leases after which a job fails
	maxAttempts = 50 // claims after which it fails, however they ended

	defaultThrottle = 30 * time.Second // without after_seconds
	firstBackoff    = 10 * time.Second // after the first attempt; it doubles with each further one
	maxBackoff      = 10 * time.Minute
)

// Error codes of jobs that no worker reported as failed.
const (
	codeLeaseExpired  = "lease_expired"
	codeTooManyClaims = "too_many_claims"
)

// A ledger contains the runs and leases that a transaction has read under the runs' locks, and its changes to them.
// Reports are applied to it without the database. A run that does not exist is not in runs.
type ledger struct {
	now       time.Time
	revoked   []store.ID // workers
	runs      map[runKey]*lockedRun
	results   []*result
	attempts  []attempt
	throttles map[string]time.Time          // until when, by provider
	pauses    map[string]pause              // by provider
	applied   map[string]map[Outcome]uint64 // how many reports, by provider and outcome
	usage     map[string]Usage              // of answers, by provider
}

func newLedger() *ledger {
	return &ledger{runs: make(map[runKey]*lockedRun), throttles: make(map[string]time.Time), pauses: make(map[string]pause),
		applied: make(map[string]map[Outcome]uint64), usage: make(map[string]Usage)}
}

// A lockedRun is a run whose row is locked.
type lockedRun struct {
	key                         runKey
	status                      string
	total, perModel             int32 // jobs
	returned, completed, failed int32

	leases  []*lease        // leases that reports are about, by their first job
	before  map[int32]lease // the leases as they were read, by their first job
	changed bool            // the counters
}

// addLease adds a row that was read.
func (r *lockedRun) addLease(l *lease) {
	// Ranges of one batch may read a lease twice.
	if _, ok := r.before[l.first]; ok {
		return
	}
	if r.before == nil {
		r.before = make(map[int32]lease)
	}
	r.before[l.first] = *l
	r.insert(l)
}

// find returns the index of the lease that covers a job, or -1.
func (r *lockedRun) find(ordinal int32) int {
	i := sort.Search(len(r.leases), func(i int) bool { return r.leases[i].last >= ordinal })
	if i < len(r.leases) && r.leases[i].first <= ordinal {
		return i
	}
	return -1
}

// cut takes one job out of the lease that covers it.
func (r *lockedRun) cut(i int, ordinal int32) {
	l := r.leases[i]
	switch {
	case l.first == l.last:
		r.leases = slices.Delete(r.leases, i, i+1)
	case ordinal == l.first:
		l.first++
	case ordinal == l.last:
		l.last--
	// A job in the middle divides the lease.
	default:
		rest := *l
		rest.first, l.last = ordinal+1, ordinal-1
		r.leases = slices.Insert(r.leases, i+1, &rest)
	}
}

// insert adds a lease, or extends the lease before it if the two differ only in their jobs, which must be of one model.
func (r *lockedRun) insert(l *lease) {
	i := sort.Search(len(r.leases), func(i int) bool { return r.leases[i].first > l.first })
	// A last job that is a multiple of perModel is the last one of its model.
	if i > 0 && r.leases[i-1].precedes(l) && r.leases[i-1].last%r.perModel != 0 {
		r.leases[i-1].last = l.last
		return
	}
	r.leases = slices.Insert(r.leases, i, l)
}

// precedes reports whether other, of the same model and therefore of the same provider, continues l.
func (l *lease) precedes(other *lease) bool {
	return l.last+1 == other.first && l.state == other.state && l.attempt == other.attempt && l.tries == other.tries &&
		l.until.Equal(other.until) && l.startedAt.Equal(other.startedAt) && l.worker == other.worker
}

// A result is a row of job_results.
type result struct {
	key       Key
	attempts  int16
	settled   bool // by a report of a worker; false: the ledger has ended it
	startedAt time.Time
	answer    *answers.Answer // nil unless completed
	prepared  any             // see Ended
	code      *string         // of a failed job, with message
	message   *string
}

// A pause contains why a worker reported a provider unavailable.
type pause struct {
	reason, message string
	worker          store.ID
}

// An attempt is a row of job_attempts.
type attempt struct {
	key     Key
	number  int16
	outcome Outcome
}

// apply applies a report if its attempt holds the job, and returns true. Otherwise it changes nothing and returns
// false.
func (l *ledger) apply(s *Settlement, from Reporter) (Reply, bool) {
	r := l.runs[runKey{s.Key.Account, s.Key.Run}]
	if r == nil || r.status != "running" {
		return Reply{}, false
	}
	i := r.find(s.Key.Ordinal)
	if i < 0 {
		return Reply{}, false
	}
	// held is a copy, which is later reduced to the job of the report.
	held := *r.leases[i]
	if held.state != stateHeld || int(held.attempt) != s.Attempt || !accepts(from.Providers, held.provider) {
		return Reply{}, false
	}
	if ended := !held.until.After(l.now); ended != (s.Outcome == expired) { // after its end, a lease can only expire
		return Reply{}, false
	}
	if l.applied[held.provider] == nil {
		l.applied[held.provider] = make(map[Outcome]uint64)
	}
	l.applied[held.provider][s.Outcome]++
	// From here on the report takes effect: the job has no lease until insert.
	r.cut(i, s.Key.Ordinal)
	held.first, held.last = s.Key.Ordinal, s.Key.Ordinal
	if s.Outcome == renewed {
		held.until = l.now.Add(s.After)
		r.insert(&held)
		return Reply{Held, held.until}, true
	}
	r.changed = true
	// The first report of the batch is recorded.
	if _, ok := l.pauses[held.provider]; !ok && s.Outcome == Unavailable {
		l.pauses[held.provider] = pause{s.ErrorCode, s.ErrorMessage, from.Worker}
	}
	l.end(r, &held, s)
	return Reply{State: Settled}, true
}

// end ends the attempt that held a job.
func (l *ledger) end(r *lockedRun, held *lease, s *Settlement) {
	switch s.Outcome {
	case Completed:
		r.completed++
		if s.Answer.Usage != nil {
			l.usage[held.provider] = l.usage[held.provider].plus(s.Answer.Usage)
		}
		l.finish(held, s, &result{settled: true, answer: s.Answer, prepared: s.prepared})
	case Failed:
		r.failed++
		l.finish(held, s, &result{settled: true, code: &s.ErrorCode, message: &s.ErrorMessage})
	default:
		l.giveBack(r, held, s)
	}
}

// giveBack makes a job wait for another try, or makes it fail after the last one.
func (l *ledger) giveBack(r *lockedRun, held *lease, s *Settlement) {
	// No worker reports an expiry, so it cannot be repeated and needs no record.
	if s.Outcome != expired {
		l.attempts = append(l.attempts, attempt{s.Key, held.attempt, s.Outcome})
	}
	// Unless a case below says otherwise, the job can be claimed again at once.
	held.state, held.until = stateWaiting, l.now
	switch s.Outcome {
	case Retry:
		held.tries++
		held.until = l.now.Add(backoff(held.attempt, s.After))
	case Throttled:
		until := l.now.Add(defaultThrottle)
		if s.After > 0 {
			until = l.now.Add(s.After)
		}
		// The latest end counts. The job itself does not wait: its provider does.
		if until.After(l.throttles[held.provider]) {
			l.throttles[held.provider] = until
		}
	case expired:
		held.tries++
	}

	// The error of a job that is given back for the last time.
	code, message := codeTooManyClaims, fmt.Sprintf("The job was claimed %d times and did not end.", maxAttempts)
	switch {
	case held.tries >= maxTries && s.Outcome == Retry:
		code, message = s.ErrorCode, s.ErrorMessage
	case held.tries >= maxTries:
		code, message = codeLeaseExpired, "The lease of the last try ended before a worker settled the job."
	case held.attempt >= maxAttempts:
	default:
		r.returned++
		r.insert(held)
		return
	}
	r.failed++
	l.finish(held, s, &result{code: &code, message: &message})
}

// finish adds the result of a job that has ended.
func (l *ledger) finish(held *lease, s *Settlement, result *result) {
	result.key, result.attempts, result.startedAt = s.Key, held.attempt, held.startedAt
	l.results = append(l.results, result)
}

// backoff returns how long a job waits after its nth attempt: as long as the worker asked for, or a time that doubles
// with each attempt.
func backoff(n int16, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked
	}
	d := maxBackoff
	// 10 s << 6 would exceed maxBackoff.
	if n < 7 {
		d = firstBackoff << (n - 1)
	}
	return time.Duration(float64(d) * (0.8 + 0.4*rand.Float64())) // spreads load
}

// finishRuns makes runs final whose jobs are all final, and returns their keys in order. A run without changed counters
// is not final yet, or was final before.
func (l *ledger) finishRuns() (finished []runKey) {
	for _, r := range l.runs {
		if !r.changed || r.completed+r.failed < r.total {
			continue
		}
		switch {
		// apply changes only runs that are running, so none of these was canceled.
		case r.failed == 0:
			r.status = "completed"
		case r.completed == 0:
			r.status = "failed"
		default:
			r.status = "partial"
		}
		finished = append(finished, r.key)
	}
	slices.SortFunc(finished, compareRuns)
	return finished
}

// changedLeases returns the keys of rows to delete, the rows to insert or update, and by how many jobs the held leases
// change.
func (l *ledger) changedLeases() (gone leaseKeys, put leaseRows, held holds) {
	held = make(holds)
	for _, r := range l.runs {
		for first, before := range r.before {
			// All leases that were read are held leases (readLeases).
			held.add(before.account, before.run, before.provider, -before.jobs())
			if i := r.find(first); i < 0 || r.leases[i].first != first {
				gone.add(before.account, before.run, first)
			}
		}
		for _, now := range r.leases {
			if now.state == stateHeld {
				held.add(now.account, now.run, now.provider, now.jobs())
			}
			// A lease that was not read is compared with the zero lease, and so is written.
			if *now != r.before[now.first] {
				put.add(now)
			}
		}
	}
	maps.DeleteFunc(held, func(_ hold, jobs int32) bool { return jobs == 0 })
	return gone, put, held
}
