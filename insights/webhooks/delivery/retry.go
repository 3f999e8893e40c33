package delivery

import (
	"math/rand/v2"
	"time"
)

// schedule returns the delay after the nth failed attempt, from 1 on; false: there is no further attempt.
func schedule(attempt int) (time.Duration, bool) {
	delays := [...]time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	if attempt > len(delays) {
		return 0, false
	}
	return delays[attempt-1], true
}

// failingPeriod is how long attempts to an endpoint must have failed, without a success, for a failed attempt to
// disable it.
const failingPeriod = 3 * 24 * time.Hour

// nextDelay returns when to retry after the nth attempt failed with r: by the schedule, changed at random by up to 20 %
// so that deliveries that failed together are not retried together, or after the receiver's Retry-After, whichever is
// later.
func nextDelay(attempt int, r result) (time.Duration, bool) {
	delay, again := schedule(attempt)
	if !again {
		return 0, false
	}
	delay += time.Duration((rand.Float64()*0.4 - 0.2) * float64(delay))
	return max(delay, r.retryAfter), true
}
