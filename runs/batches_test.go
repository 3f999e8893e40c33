package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
)

// inOneBatch sends 20 requests for a run of one job to a new process while its first batch, which is the first request,
// is held up. The others therefore share the next batch. It returns functions that wait for their errors.
func (s *site) inOneBatch(t *testing.T, settings string, change func([]*runs.CreateRequest)) (sent []func() error) {
	t.Helper()
	pool, held, goOn := storetest.HeldUp(t, s.open(t, settings), "INSERT INTO account_months")
	r := newRuns(runs.Config{Pool: pool})
	var requests []*runs.CreateRequest
	for i := range 20 {
		requests = append(requests, s.request(fmt.Sprint(i), 1, 1, 1))
	}
	change(requests)
	for i, q := range requests {
		sent = append(sent, goCreate(t, r, q))
		if i == 0 {
			<-held
		}
	}
	storetest.Eventually(t, "the others wait", func() bool {
		n := r.Stats()
		return n.Small.Waiting+n.Metered.Waiting == len(requests)-1
	})
	goOn()
	return sent
}

// TestOnlyTheCulpritFails: an error that one request causes does not fail the others of its batch.
func TestOnlyTheCulpritFails(t *testing.T) {
	s := newSite(t)
	codes := map[int]string{6: "23514", 7: "23514", 13: "22021"}
	sent := s.inOneBatch(t, "", func(requests []*runs.CreateRequest) {
		requests[6].Key = strings.Repeat("k", 256)
		requests[7].Proposal.ModelIDs = nil
		requests[13].Proposal.Country = "\x00"
	})
	for i, wait := range sent {
		err := wait()
		e, _ := errors.AsType[*pgconn.PgError](err)
		if code, culprit := codes[i]; !culprit {
			must(t, err)
		} else if e == nil || e.Code != code && (e.Code != "XX000" || !storetest.OnCitus()) { // it loses the codes of some errors
			t.Errorf("culprit %d: got %v, want an error %s", i, err, code)
		}
	}
	s.wantRuns(t, len(sent)-len(codes))
	large := s.request("large", 1, 1, 5001) // is written in a transaction of its own
	large.Proposal.Country = "\x00"
	_, err := s.process(t, "").Create(t.Context(), large)
	if e, _ := errors.AsType[*pgconn.PgError](err); e == nil {
		t.Errorf("a large run: got %v, want PostgreSQL's error", err)
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
				storetest.SetLockTimeout(t, s.pool, "5s") // on a cluster also of a batch
			}
			claimed := begin(t, s.pool, `SET LOCAL session_replication_role = replica`) // so that its run need not be there
			must(t, ignore(claimed.Exec(t.Context(), `
INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer)
VALUES ($1, 'POST', '/v1/runs', '5', sha256(''), $2, '')`, s.credential.AccountID, store.NewID())))
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
