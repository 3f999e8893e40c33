package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"aiv/runs"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5/pgconn"
)

// heldUp returns a process whose first batch is held up: held is closed when it is, and goOn lets it go on.
func (s *site) heldUp(t *testing.T, settings string) (r *runs.Runs, held <-chan struct{}, goOn func()) {
	t.Helper()
	pool, held, goOn := storetest.HeldUp(t, s.open(t, settings), "INSERT INTO account_months")
	return newRuns(runs.Config{Pool: pool}), held, goOn
}

// inOneBatch sends requests to a new process while its first batch, which is the first request, is held up. The others
// therefore share the next batch.
func (s *site) inOneBatch(t *testing.T, settings string, requests []*runs.CreateRequest) (*runs.Runs, []*outcome) {
	t.Helper()
	r, held, goOn := s.heldUp(t, settings)
	var outcomes []*outcome
	for i, q := range requests {
		outcomes = append(outcomes, goCreate(t.Context(), r, q))
		if i == 0 {
			<-held
		}
	}
	storetest.Eventually(t, "the others wait", func() bool {
		n := r.Stats()
		return n.Small.Waiting+n.Metered.Waiting == len(requests)-1
	})
	goOn()
	return r, outcomes
}

// TestOnlyTheCulpritFails: an error that one request causes does not fail the others of its batch.
func TestOnlyTheCulpritFails(t *testing.T) {
	s := newSite(t)
	requests := s.numbered(40)
	requests[13].Key = strings.Repeat("k", 256)
	requests[14].Proposal.ModelIDs = nil
	requests[21].Proposal.Country = "\x00"
	codes := map[int]string{13: "23514", 14: "23514", 21: "22021"}
	_, outcomes := s.inOneBatch(t, "", requests)
	for i, o := range outcomes {
		code, culprit := codes[i]
		if !culprit {
			o.created(t, "request ", i)
			continue
		}
		<-o.done
		e, _ := errors.AsType[*pgconn.PgError](o.err)
		if e == nil || e.Code != code && (e.Code != "XX000" || !storetest.OnCitus()) { // it loses the codes of some errors
			t.Errorf("culprit %d: got %v, %v, want an error %s", i, o.result, o.err, code)
		}
	}
	s.wantRuns(t, len(requests)-len(codes))
}

// TestConnectionsKeepDying: requests that are retried after temporary errors are each written once.
func TestConnectionsKeepDying(t *testing.T) {
	s := newSite(t)
	const n = 60
	processes := []*runs.Runs{s.process(t, "&application_name=victim"), s.process(t, "&application_name=victim")}
	create(t, processes[0], s.request("first", 1, 1, 1))
	// They wait for the month until some have died.
	month := begin(t, s.pool, `SELECT FROM account_months WHERE account_id = $1 FOR UPDATE`, s.credential.AccountID)
	release := sync.OnceFunc(func() { must(t, month.Rollback(t.Context())) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		storetest.AtOnce(n, func(i int) {
			for try := 0; ; try++ {
				_, err := processes[(i+try)%2].Create(t.Context(), s.request(fmt.Sprint(i), 1+i%3, 1+i%10, 10))
				if err == nil {
					return
				}
				if !store.IsUnavailable(err) || try == 1000 {
					t.Errorf("request %d: %v", i, err)
					return
				}
			}
		})
	}()
	killed := 0
	storetest.Eventually(t, "12 sessions are terminated", func() bool {
		select {
		case <-done:
			return true
		default:
		}
		killed += s.count(t, `SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = 'victim' AND state = 'active' LIMIT 1 OFFSET 0) k`)
		if killed >= 3 {
			release()
		}
		return killed >= 12
	})
	<-done
	s.wantRuns(t, 1+n)
}
