package gateway

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"aiv/store/storetest"
)

// TestLeasesAndRevocation: a lease lasts as long as the claim or heartbeat asked for. A claim whose token is revoked while
// it waits gets 401 and no job.
func TestLeasesAndRevocation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.target(t)
	dispatcher := f.serveWorkers(t, at)
	began := time.Now().Truncate(time.Microsecond)
	n, claimed := f.claimTwo(t, at, "1")
	renewed := at.work(t, n, "heartbeat", `{"lease_seconds":600,"jobs":[{"id":"{job1}","attempt":1}]}`)
	for response, seconds := range map[string]time.Duration{claimed: 900, renewed: 600} {
		until, err := time.Parse(time.RFC3339Nano, regexp.MustCompile(`"lease_until":"([^"]*)"`).FindStringSubmatch(response)[1])
		if lasts := seconds * time.Second; err != nil || until.Before(began.Add(lasts)) || until.After(time.Now().Add(lasts)) {
			t.Errorf("the lease ends at %v, %v, and began after %v: want %v", until, err, began, lasts)
		}
	}

	answered := make(chan string)
	go func() {
		answer := `"jobs":[]`
		for strings.Contains(answer, `"jobs":[]`) { // it may have waited for as long as it may
			answer = at.work(t, n, "claim", `{"limit":1,"lease_seconds":900,"providers":null,"wait_seconds":30}`)
		}
		answered <- answer
	}()
	storetest.Eventually(t, "the claim waits", func() bool { return dispatcher.Stats().Waiting == 1 })
	f.exec(t, `UPDATE workers SET revoked_at = now() WHERE name = 'golden main'`)
	create(t, f.gateways[0], f.keys["full"], "/v1/runs", strings.Replace(smallRun, "golden/all", "golden/worked", 1))
	if answer := <-answered; !strings.Contains(answer, " 401 ") || !strings.Contains(answer, "WWW-Authenticate: ") {
		t.Errorf("the claim of a revoked worker: %s", answer)
	}
}

// work sends a request to the worker interface.
func (at *target) work(t *testing.T, n *names, route, body string) (response string) {
	t.Helper()
	const head = "\nAuthorization: Bearer {worker:main}\nContent-Type: application/json\n\n"
	return at.send(t, n.wire(t, "POST /worker/v1/"+route+head+body, at.keys))
}

// claimTwo creates a run of two jobs for each repetition, {run1}, and claims two of them, {job1} and {job2}.
func (f *fixture) claimTwo(t *testing.T, at *target, repetitions string) (n *names, response string) {
	t.Helper()
	n = newNames()
	n.of("run", create(t, f.gateways[0], f.keys["full"], "/v1/runs", strings.NewReplacer("golden/all", "golden/worked",
		`"golden-q1"`, `"golden-q1","golden-q2"`, `"repetitions":1`, `"repetitions":`+repetitions).Replace(smallRun)))
	response = at.work(t, n, "claim", `{"limit":2,"lease_seconds":900,"providers":null,"wait_seconds":10}`)
	n.rename(response)
	return n, response
}
