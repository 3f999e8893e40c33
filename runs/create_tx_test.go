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
	t.Parallel()
	s := newSite(t)
	r := s.process(t, "")
	back := errors.New("back")
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
			_, err := tx.Exec(t.Context(), `UPDATE accounts SET name = name || '+' WHERE id = $1`, s.credential.AccountID)
			must(t, err)
			return end
		})
		if ended != end {
			t.Errorf("the transaction ended with %v, %v, want %v", ended, err, end)
		}
		return result, err
	}
	create := func(quota *int64, key string, models, questions int, end error) *runs.CreateResult {
		t.Helper()
		result, err := due(quota, key, models, questions, end)
		must(t, err)
		return result
	}

	create(nil, "rolled back", 1, 1, back)
	s.wantRuns(t, 0)
	want := 0
	for name, quota := range map[string]*int64{"no quota": nil, "a quota": new(int64(20_000))} {
		first := create(quota, name, 2, 3, nil)
		if first.Replayed || string(first.Response) != first.RunID.Text("run")+" queued" {
			t.Errorf("%s: %+v", name, first)
		}
		first.Replayed = true
		equal(t, first, create(quota, name, 2, 3, nil), name, ": the key again")
		if _, err := due(quota, name, 2, 2, nil); !errors.Is(err, runs.ErrKeyReused) {
			t.Errorf("%s: the key with another run: %v", name, err)
		}
		create(quota, name+", large", 12, 500, nil)
		direct, err := r.Create(t.Context(), s.request(name, 1, 1, 1))
		must(t, err)
		equal(t, false, direct.Replayed, name, ": the key of a route is replayed")
		want += 3
		s.wantRuns(t, want)
	}
	quota := new(int64(12_014 + 5))
	if _, err := due(quota, "too large", 2, 3, nil); !isQuota(err) {
		t.Errorf("a run of 6 jobs, of which 5 remain: %v", err)
	}
	create(quota, "fits", 1, 5, nil)
	s.wantRuns(t, want+1)
	equal(t, 10, s.count(t, `SELECT length(name) - length('customer') FROM accounts WHERE id = $1`, s.credential.AccountID),
		"transactions were committed")
}

func isQuota(err error) bool {
	_, ok := errors.AsType[*runs.QuotaError](err)
	return ok
}
