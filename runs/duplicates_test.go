package runs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"
)

// claim begins a transaction that has claimed a key.
func (s *site) claim(t *testing.T, key string) pgx.Tx {
	t.Helper()
	tx := begin(t, s.pool, `SET LOCAL session_replication_role = replica`) // so that its run need not be there
	must(t, ignore(tx.Exec(t.Context(), `INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
		VALUES ($1, 'POST', '/v1/runs', $2, sha256(''), $3, '')`, s.credential.AccountID, key, store.NewID())))
	return tx
}

// TestDuplicateAlone: a request that waits for a duplicate delays no other request, even if it is alone in its batch.
func TestDuplicateAlone(t *testing.T) {
	t.Parallel()
	for name, repetitions := range map[string]int64{"small": 1, "large": 5001} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			storetest.SetLockTimeout(t, s.pool, "2s")
			r := s.process(t, "&lock_timeout=0&statement_timeout=0")
			claimed := s.claim(t, "key")
			var waiting []func() error
			for range 5 { // more than may be retried at a time
				waiting = append(waiting, goCreate(t, r, s.request("key", 1, 1, repetitions)))
			}
			s.waiting(t, "transactionid")
			for i := range 2 {
				create(t, r, s.request(fmt.Sprint(i), 1, 1, repetitions))
			}
			must(t, claimed.Rollback(t.Context()))
			for _, wait := range waiting {
				// A cluster gives up on locks sooner.
				if err := wait(); !storetest.OnCitus() || !errors.Is(err, runs.ErrKeyInUse) {
					must(t, err)
				}
			}
			must(t, ignore(r.Create(t.Context(), s.request("key", 1, 1, repetitions))))
			s.wantRuns(t, 3)
		})
	}
}

// TestBatchWithADuplicate: requests in one batch with a request that waits for a duplicate are written while it waits.
// Runs of an account with a quota wait together, and are written when it has failed: it waits for as long as the
// session's settings allow.
func TestBatchWithADuplicate(t *testing.T) {
	t.Parallel()
	for name, quota := range map[string]*int64{"with a quota": new(int64(20)), "without a quota": nil} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.meter(quota, nil)
			settings, want, written := "", error(nil), 20
			if quota != nil || storetest.OnCitus() { // a cluster gives up on locks sooner
				settings, want, written = "&lock_timeout=1s", runs.ErrKeyInUse, 19
				storetest.SetLockTimeout(t, s.pool, "5s") // on a cluster also that of a batch
			}
			claimed := s.claim(t, "5")
			sent := s.inOneBatch(t, settings, func([]*runs.CreateRequest) {})
			for i, wait := range sent {
				if i != 5 {
					must(t, wait())
				}
			}
			if want == nil {
				must(t, claimed.Rollback(t.Context()))
			}
			if err := sent[5](); !errors.Is(err, want) {
				t.Errorf("the waiting request: got %v, want %v", err, want)
			}
			s.wantRuns(t, written)
		})
	}
}
