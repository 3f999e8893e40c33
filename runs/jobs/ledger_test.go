package jobs

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/store"
)

// TestLeasesAreExtended: jobs share a lease if they are of one model and differ in nothing else.
func TestLeasesAreExtended(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first := lease{first: 4, last: 6, provider: "p", state: stateHeld, attempt: 2, tries: 1, until: now, startedAt: now, worker: store.NewID()}
	for _, test := range []struct {
		name   string
		change func(*lease)
		want   [][2]int32
	}{
		{"nothing", func(*lease) {}, [][2]int32{{4, 9}}},
		{"the zone of the times", func(l *lease) { l.until, l.startedAt = now.UTC(), now.UTC() }, [][2]int32{{4, 9}}},
		{"a gap", func(l *lease) { l.first = 8 }, [][2]int32{{4, 6}, {8, 9}}},
		{"the state", func(l *lease) { l.state = stateWaiting }, [][2]int32{{4, 6}, {7, 9}}},
		{"the attempt", func(l *lease) { l.attempt++ }, [][2]int32{{4, 6}, {7, 9}}},
		{"the tries", func(l *lease) { l.tries++ }, [][2]int32{{4, 6}, {7, 9}}},
		{"the end", func(l *lease) { l.until = now.Add(1) }, [][2]int32{{4, 6}, {7, 9}}},
		{"the first claim", func(l *lease) { l.startedAt = now.Add(1) }, [][2]int32{{4, 6}, {7, 9}}},
		{"the worker", func(l *lease) { l.worker = store.NewID() }, [][2]int32{{4, 6}, {7, 9}}},
	} {
		l, next := first, first
		next.first, next.last = 7, 9
		test.change(&next)
		for perModel, want := range map[int32][][2]int32{10: test.want, 6: {{4, 6}, {next.first, 9}}} { // job 7 is of another model
			run := &lockedRun{perModel: perModel}
			for _, add := range []lease{l, next} {
				run.insert(&add)
			}
			var got [][2]int32
			for _, l := range run.leases {
				got = append(got, [2]int32{l.first, l.last})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s differs, %d jobs of a model (-want +got):\n%s", test.name, perModel, diff)
			}
		}
	}
}

// TestRetriedJobWaitsLonger: a retried job waits as long as its worker asked for, or 10 s doubled with each attempt up to 10 min, ±20
// %.
func TestRetriedJobWaitsLonger(t *testing.T) {
	t.Parallel()
	for n, want := range map[int16]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 49: 10 * time.Minute} {
		least, most := time.Hour, time.Duration(0)
		for range 100 {
			d := backoff(n, 0)
			least, most = min(least, d), max(most, d)
		}
		if least < want*8/10 || least > want*9/10 || most > want*12/10 || most < want*11/10 {
			t.Errorf("attempt %d: %v to %v, want %v ±20 %%", n, least, most, want)
		}
	}
	if got := backoff(3, time.Second); got != time.Second {
		t.Errorf("got %v, want what was asked for", got)
	}
}

// TestClaimsTogetherAcceptAll: claims together accept all providers if one of them does.
func TestClaimsTogetherAcceptAll(t *testing.T) {
	t.Parallel()
	all, a, b := demand{limit: 1}, demand{limit: 2, providers: []string{"a"}}, demand{limit: 3, providers: []string{"b"}}
	for _, test := range []struct {
		demands []demand
		want    string
	}{
		{[]demand{a, b}, "[a b] 5"}, {[]demand{all, a}, "[] 3"}, {[]demand{a, all, b}, "[] 6"},
	} {
		providers, jobs := wanted(test.demands)
		if got := fmt.Sprint(providers, jobs); got != test.want || (providers == nil) != (test.want[:2] == "[]") {
			t.Errorf("%v: got %s, want %s", test.demands, got, test.want)
		}
	}
}
