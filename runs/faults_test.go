package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aiv/runs"
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
}
