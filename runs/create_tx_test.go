package runs_test

import (
	"errors"
	"testing"

	"aiv/idempotency"
	"aiv/runs"

	"github.com/jackc/pgx/v5"
)

// TestCreateTx: a run is written with the other changes of a transaction or not at all, once for a key that no client
// can send, and within the quota of its account.
func TestCreateTx(t *testing.T) {
	s, r := newProcess(t)
	back := errors.New("back")
	// due creates a run of models × questions in a transaction that ends with an error, or nil.
	due := func(quota *int64, key string, models, questions int, end error) (result *runs.CreateResult, err error) {
		q := s.request(key, models, questions, 1)
		q.Operation = idempotency.Operation{Method: "schedule", Route: "weekly"}
		q.Proposal.Orderer.JobsPerMonth = quota
		methodology, err := r.Check(t.Context(), q.Proposal)
		must(t, err)
		ended := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			if result, err = r.CreateTx(t.Context(), tx, q, methodology); err != nil && !isQuota(err) && !errors.Is(err, runs.ErrKeyReused) {
				return err
			}
			must(t, ignore(tx.Exec(t.Context(), `UPDATE accounts SET name = name || '+' WHERE id = $1`, s.credential.AccountID)))
			return end
		})
		if ended != end {
			t.Errorf("the transaction ended with %v, %v, want %v", ended, err, end)
		}
		return result, err
	}
	must(t, ignore(due(nil, "rolled back", 1, 1, back)))
	s.wantRuns(t, 0)
	for name, quota := range map[string]*int64{"no quota": nil, "a quota": new(int64(20_000))} {
		first, err := due(quota, name, 2, 3, nil)
		must(t, err)
		equal(t, &runs.CreateResult{RunID: first.RunID, Response: []byte(first.RunID.Text("run") + " queued")}, first, name)
		first.Replayed = true
		again, err := due(quota, name, 2, 3, nil)
		must(t, err)
		equal(t, first, again, name, ": the key again")
		if _, err := due(quota, name, 2, 2, nil); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("%s: the key with another run: %v", name, err)
		}
		must(t, ignore(due(quota, name+", large", 12, 500, nil)))
		create(t, r, s.request(name, 1, 1, 1)) // the key of a route
	}
	quota := new(int64(12_014 + 5))
	if _, err := due(quota, "too large", 2, 3, nil); !isQuota(err) {
		t.Errorf("a run of 6 jobs, of which 5 remain: %v", err)
	}
	must(t, ignore(due(quota, "fits", 1, 5, nil)))
	s.wantRuns(t, 7)
}

func isQuota(err error) bool {
	_, ok := errors.AsType[*runs.QuotaError](err)
	return ok
}
