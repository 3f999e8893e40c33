package delivery

import (
	"math/rand/v2"
	"time"
)

// schedule has the delays after failed attempts, from the first on. There is no further attempt after the last.
var schedule = [...]time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
	14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

// failingPeriod is how long attempts to an endpoint must have failed, without a success, for a failed attempt to
// disable it.
const failingPeriod = 3 * 24 * time.Hour

// nextDelay returns when to retry after the nth attempt failed with r: by the schedule, changed at random by up to 20 %
// so that deliveries that failed together are not retried together, or after the receiver's Retry-After, whichever is
// later.
func nextDelay(attempt int, r result) (time.Duration, bool) {
	if attempt > len(schedule) {
		return 0, false
	}
	delay := schedule[attempt-1]
	delay += time.Duration((rand.Float64()*0.4 - 0.2) * float64(delay))
	return max(delay, r.retryAfter), true
}
