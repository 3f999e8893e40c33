package runs_test

import (
	"errors"
	"fmt"
	"testing"

	"aiv/idempotency"
	"aiv/runs"

	"github.com/jackc/pgx/v5"
)

// TestCreateTx: a run is written with the other changes of a transaction or not at all, once for a key that no client
// can send, and within the quota of its account.
func TestCreateTx(t *testing.T) {
	s, r := newProcess(t)
	// due creates a run of models × questions in a transaction that ends with an error, or nil.
	due := func(quota *int64, key string, models, questions int, end error) (result *runs.CreateResult, err error) {
		q := s.request(key, models, questions, 1)
		q.Operation = idempotency.Operation{Method: "schedule", Route: "weekly"}
		q.Proposal.Orderer.JobsPerMonth = quota
		ended := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			result, err = r.CreateTx(t.Context(), tx, q, "AIVM-1.0")
			must(t, ignore(tx.Exec(t.Context(), `UPDATE accounts SET name = name || '+' WHERE id = $1`, s.credential.AccountID)))
			return end
		})
		equal(t, fmt.Sprint(end), fmt.Sprint(ended), "the end of the transaction")
		return result, err
	}
	must(t, ignore(due(nil, "rolled back", 1, 1, errors.New("back"))))
	s.wantRuns(t, 0)
	for name, quota := range map[string]*int64{"no quota": nil, "a quota": new(int64(12_012))} {
		first, err := due(quota, name, 2, 3, nil)
		must(t, err)
		first.Replayed = true
		again, err := due(quota, name, 2, 3, nil)
		must(t, err)
		equal(t, first, again, name, ": the key again")
		if _, err := due(quota, name, 2, 2, nil); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("%s: the key with another run: %v", name, err)
		}
		must(t, ignore(due(quota, name+", large", 12, 500, nil)))
	}
	_, err := due(new(int64(12_012)), "too large", 1, 1, nil)
	if _, exceeded := errors.AsType[*runs.QuotaError](err); !exceeded {
		t.Errorf("a run for which no job remains: %v", err)
	}
	s.wantRuns(t, 4)
}
