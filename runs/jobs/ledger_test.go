package jobs

import (
	"fmt"
	"testing"
	"time"

	"aiv/store"
)

// TestLeasesAreExtended: jobs of one model share a lease if they differ in nothing else. That a lease has jobs of one
// model is an invariant.
func TestLeasesAreExtended(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first := lease{first: 4, last: 6, provider: "p", state: stateHeld, attempt: 2, tries: 1, until: now, startedAt: now,
		worker: store.NewID()}
	for _, test := range []struct {
		differs string
		change  func(*lease)
		want    string
	}{
		{"nothing", func(*lease) {}, "4-9 "},
		{"the zone of the times", func(l *lease) { l.until, l.startedAt = now.UTC(), now.UTC() }, "4-9 "},
		{"a gap", func(l *lease) { l.first = 8 }, "4-6 8-9 "},
		{"the state", func(l *lease) { l.state = stateWaiting }, "4-6 7-9 "},
		{"the attempt", func(l *lease) { l.attempt++ }, "4-6 7-9 "},
		{"the tries", func(l *lease) { l.tries++ }, "4-6 7-9 "},
		{"the end", func(l *lease) { l.until = now.Add(1) }, "4-6 7-9 "},
		{"the first claim", func(l *lease) { l.startedAt = now.Add(1) }, "4-6 7-9 "},
		{"the worker", func(l *lease) { l.worker = store.NewID() }, "4-6 7-9 "},
	} {
		next := first
		next.first, next.last = 7, 9
		test.change(&next)
		run, first := &lockedRun{perModel: 10}, first
		run.insert(&first)
		run.insert(&next)
		got := ""
		for _, l := range run.leases {
			got += fmt.Sprintf("%d-%d ", l.first, l.last)
		}
		equal(t, test.want, got, test.differs, " differs")
	}
}

// TestRetriedJobWaitsLonger: a retried job waits as long as its worker asked for, or 10 s doubled with each attempt up
// to 10 min, ±20 %.
func TestRetriedJobWaitsLonger(t *testing.T) {
	t.Parallel()
	for n, want := range map[int16]time.Duration{
		1: 10 * time.Second, 2: 20 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 49: 10 * time.Minute,
	} {
		least, most := time.Hour, time.Duration(0)
		for range 100 {
			d := backoff(n, 0)
			least, most = min(least, d), max(most, d)
		}
		if least < want*8/10 || least > want*9/10 || most > want*12/10 || most < want*11/10 {
			t.Errorf("attempt %d: %v to %v, want %v ±20 %%", n, least, most, want)
		}
	}
	equal(t, time.Second, backoff(3, time.Second), "what was asked for")
}
