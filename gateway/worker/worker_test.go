package worker_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"aiv/gateway/worker"
	"aiv/store"
	"aiv/store/storetest"
)

// TestLeasesEndAsRequested: the worker holds jobs until the lease that its claim or heartbeat asked for is over. The
// golden files of the worker interface have the rest of the responses.
func TestLeasesEndAsRequested(t *testing.T) {
	s := newSite(t)
	s.order(100, 5)
	began := time.Now().Truncate(time.Microsecond)
	claimed := s.claim(500) // a response that is large enough to count
	var of store.ID
	must(t, s.pool.QueryRow(t.Context(), `SELECT DISTINCT worker_id FROM job_leases`).Scan(&of))
	if len(claimed) != 500 || of != s.worker.ID {
		t.Fatalf("%d jobs were claimed by %s, want 500 by %s", len(claimed), of, s.worker.ID)
	}
	renewed := s.post("heartbeat", fmt.Sprintf(`{"lease_seconds":900,"jobs":[{"id":"%s","attempt":1}]}`, claimed[0]["id"]))
	for seconds, job := range map[float64]map[string]any{60: claimed[499], 900: renewed.body.Jobs[0]} {
		until, err := time.Parse(time.RFC3339Nano, fmt.Sprint(job["lease_until"]))
		if lasts := until.Sub(began).Seconds(); err != nil || lasts < seconds || time.Until(until).Seconds() > seconds {
			t.Errorf("the lease ends %v s after the claim, %v, want %v", lasts, err, seconds)
		}
	}
}

// TestClockSteps: answered_at is compared with the database's present time, also if its clock has stepped since the
// latest transaction.
func TestClockSteps(t *testing.T) {
	db := newDatabase(t)
	s := siteOf(t, storetest.WithClockAhead(t, db, 0))
	s.order(1, 1)
	r := s.post("claim", `{"limit":1,"lease_seconds":900,"providers":null,"wait_seconds":0}`)
	storetest.SetClockAhead(t, db, 10*time.Minute)
	answered := store.FormatTime(time.Now().Add(10 * time.Minute))
	r = s.post("settle", fmt.Sprintf(`{"jobs":[{"id":"%s","attempt":1,"outcome":"completed","answer":{"text":"","citations":[],
		"search_queries":[],"model_version":null,"answered_at":"%s"}}]}`, r.body.Jobs[0]["id"], answered))
	if r.status != 200 || r.body.Jobs[0]["state"] != "settled" {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestRefusedBeforeTheBodyIsRead: what is refused before a route reads its body, such as requests with a token that was
// revoked since its last request. Every 401 takes guessDelay at least.
func TestRefusedBeforeTheBodyIsRead(t *testing.T) {
	s := newSite(t)
	s.claim(1)
	s.revoke()
	old := "Bearer " + s.token
	_, token := s.newWorker()
	for _, test := range []struct{ path, authorization, want string }{
		{"/claim", old, "401 invalid_api_key"},
		{"/settle?x=1", old, "401 invalid_api_key"},
		{"/claim", "Bearer aiv_work_x", "401 invalid_api_key"},
		{"/nowhere", "", "401 missing_credentials"},
		{"/claim", "bearer  " + token, "415 unsupported_media_type"},
	} {
		began := time.Now()
		r := s.send("POST", worker.Base+test.path, "{", "Authorization", test.authorization)
		if took := time.Since(began); fmt.Sprint(r.status, " ", r.body.Code) != test.want || r.status == 401 && took < guessDelay {
			t.Errorf("%+v: %s after %v", test, r.raw, took)
		}
	}
}

// claimWaiting sends a claim and returns when it waits. It is sent again if it has waited for as long as it may.
func (s *site) claimWaiting() <-chan reply {
	r := make(chan reply, 1)
	go func() {
		last := s.post("claim", aClaim(1, 30))
		for last.status == 200 && len(last.body.Jobs) == 0 {
			last = s.post("claim", aClaim(1, 30))
		}
		r <- last
	}()
	s.waiting(1)
	return r
}

// TestLeavingClient: the claim of a client that leaves ends before a claim that began earlier, and gets no job.
func TestLeavingClient(t *testing.T) {
	s := newSite(t)
	s.run()
	stays := s.claimWaiting()
	body := aClaim(1, 30)
	c := s.dial("claim", len(body))
	io.WriteString(c, body)
	s.waiting(2)
	c.Close()
	s.waiting(1)
	s.order(1, 1)
	if r := <-stays; len(r.body.Jobs) != 1 {
		t.Errorf("the client that stays got %s", r.raw)
	}
}

// TestRevokedWhileWaiting: a claim whose token is revoked while it waits gets 401 and no job.
func TestRevokedWhileWaiting(t *testing.T) {
	s := newSite(t)
	s.run()
	revoked := s.claimWaiting()
	s.revoke()
	s.order(1, 1)
	if r := <-revoked; r.status != 401 || r.body.Code != "invalid_api_key" || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("the claim of a revoked worker: %d %s", r.status, r.raw)
	}
}

// dial opens a connection and sends the head of a request.
func (s *site) dial(route string, length int) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.server.Listener.Addr().String())
	must(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /worker/v1/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n", route, s.token, length)
	return c
}
