package delivery

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRetriesFollowTheSchedule: retries follow the schedule until the last, which fails the delivery. Those of
// deliveries that failed together are spread over 20 % before and after the time of the schedule. A later Retry-After
// holds instead.
func TestRetriesFollowTheSchedule(t *testing.T) {
	t.Parallel()
	wants := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	outcome := func(attempts int, after time.Duration) outcome {
		r := timedOut
		r.retryAfter = after
		return newOutcome(&delivery{attempts: int32(attempts)}, attemptedURL, r)
	}
	for i, want := range wants {
		var delays []time.Duration
		for range 100 {
			o := outcome(i, want/2)
			equal(t, "pending", o.status, "the delivery after attempt ", i+1)
			delays = append(delays, o.delay)
		}
		least, most := slices.Min(delays), slices.Max(delays)
		if least < want*8/10 || most > want*12/10 || most-least < want/5 {
			t.Errorf("delays after attempt %d are from %v to %v, want %v ± 20 %%", i+1, least, most, want)
		}
		equal(t, 2*want, outcome(i, 2*want).delay, "delay with a later Retry-After")
	}
	equal(t, "failed", outcome(len(wants), 0).status, "the delivery after the last attempt")
}

func TestRetryAfterHeader(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"": 0, "x": 0, "-1": 0, "3600": time.Hour, "100000000": 24 * time.Hour, strings.Repeat("9", 30): 24 * time.Hour,
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat):        time.Hour,
		time.Now().Add(1000 * time.Hour).UTC().Format(http.TimeFormat): 24 * time.Hour,
	} {
		if got := retryAfter(text); got > want || got < want-time.Minute {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
