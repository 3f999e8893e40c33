package demo

import (
	"context"
	"slices"
	"time"

	"aiv/runs/jobs"
	"aiv/store"
)

// workedProviders are those whose jobs the sample worker answers. The jobs of the other ready provider wait for a
// worker that the reader starts.
var workedProviders = []string{"openai", "anthropic", "google", "perplexity", "xai"}

// Providers returns the codes of the providers whose jobs the sample worker answers.
func Providers() []string { return slices.Clone(workedProviders) }

// thinking is the time that the sample worker takes for its jobs, so that a run is seen to move.
const thinking = 500 * time.Millisecond

// Work is the sample worker: it answers jobs until ctx is done, but not the jobs of the providers to leave. It claims
// from the dispatcher in this process, and needs no token.
func Work(ctx context.Context, d *jobs.Dispatcher, leave []string) {
	// If no provider remains, the list is empty but not nil: nil would claim the jobs of all providers.
	providers := slices.DeleteFunc(slices.Clone(workedProviders), func(p string) bool { return slices.Contains(leave, p) })
	request := &jobs.ClaimRequest{Worker: store.NewID(), Providers: providers, Limit: 200, Lease: 30 * time.Second, Wait: 20 * time.Second}
	for ctx.Err() == nil {
		claimed, err := d.Claim(ctx, request)
		pause := thinking
		if err != nil {
			pause = 2 * time.Second // the dispatcher logs what is wrong
		}
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-time.After(pause):
		}
		if len(claimed) == 0 {
			continue
		}
		// Claimed jobs are settled even when ctx is done. Otherwise they would wait until their leases end.
		settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		now, err := d.Now(settling)
		settlements := make([]jobs.Settlement, len(claimed))
		for i := range claimed {
			settlements[i] = jobs.Settlement{Key: claimed[i].Key, Attempt: claimed[i].Attempt, Outcome: jobs.Released}
			if !ended && err == nil {
				settlements[i].Outcome, settlements[i].Answer = jobs.Completed, sampleAnswer(&claimed[i], now, "", weeks)
			}
		}
		d.Settle(settling, jobs.Reporter{}, settlements) // if it fails, the jobs are handed out again
		cancel()
	}
}
