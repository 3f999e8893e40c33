package runs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"aiv/auth"
	"aiv/runs"
	"aiv/store"
	"aiv/store/batch"
	"aiv/store/storetest"
)

// TestGetInBatches: reads that arrive while another is in flight share one round trip, and each gets its own run. An account may
// not take all the places in the queue.
func TestGetInBatches(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	other := s.customer(t)
	r := runs.New(runs.Config{Pool: s.open(t, ""), Checks: checker(always), NewID: store.NewID, Timeout: time.Minute, MaxWaiting: 20})
	runOf := func(c *auth.Credential, key string) store.ID {
		q := s.request(key, 1, 2, 3)
		q.Proposal.Credential = c
		return create(t, r, q).RunID
	}
	first, second, others := runOf(s.credential, "a"), runOf(s.credential, "b"), runOf(other, "a")

	tx, err := s.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.Background())
	_, err = tx.Exec(t.Context(), `LOCK TABLE measurement_runs IN ACCESS EXCLUSIVE MODE`)
	must(t, err)
	var reads sync.WaitGroup
	get := func(account, id store.ID, found bool) {
		reads.Go(func() {
			run, err := r.Get(t.Context(), account, id)
			switch {
			case err != nil:
				t.Error(err)
			case !found && run != nil:
				t.Errorf("the account %s reads the run %s of another", account, id)
			case found && (run == nil || run.ID != id || run.AccountID != account || run.TotalJobs != 6):
				t.Errorf("the run %s of %s is %+v", id, account, run)
			}
		})
	}
	mine := s.credential.AccountID
	get(mine, first, true)
	s.waiting(t, "relation")
	for range 2 {
		get(mine, first, true)
		get(mine, second, true)
	}
	get(mine, others, false)
	get(other.AccountID, others, true)
	get(other.AccountID, first, false)
	s.waitingReads(t, r, 7)
	if _, err := r.Get(t.Context(), mine, second); !errors.Is(err, batch.ErrOverloaded) {
		t.Errorf("the sixth read that waits for an account returns %v", err)
	}
	must(t, tx.Rollback(t.Context()))
	reads.Wait()
	if stats := r.Stats().Reads; stats.Inputs != 8 || stats.Sizes[0] != 1 || stats.Sizes[3] != 1 {
		t.Errorf("8 reads took other batches than one of 1 and one of 7: %+v", stats)
	}
}

func (s *site) waitingReads(t *testing.T, r *runs.Runs, n int) {
	t.Helper()
	storetest.Eventually(t, fmt.Sprintf("%d reads wait", n), func() bool { return r.Stats().Reads.Waiting == n })
}
