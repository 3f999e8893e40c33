package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store/storetest"
)

// A load is the traffic of a fault test: clients that create runs, each of which retries its key until it succeeds, and
// one client that exceeds a small limit. It records the acknowledged requests and compares them with the database at
// the end.
type load struct {
	url    string // of the database
	key    string
	others []string // keys of further accounts
	small  madeKey  // limited to faultLimit
	serves []atomic.Pointer[process]
	pause  time.Duration // the longest of a client between two requests
	most   int           // repetitions of a run

	t    *testing.T
	wg   sync.WaitGroup
	over atomic.Bool
	cut  atomic.Int64 // requests to create a run that were sent and got no response

	mu       sync.Mutex
	keys     map[string]*asked
	windows  map[string]int // by reset: admitted to the small limit
	statuses map[int]int
	slowest  time.Duration             // of one exchange
	last     struct{ run, key string } // that was acknowledged
}

// asked is a run that clients create.
type asked struct {
	key     string // of the account
	body    string
	jobs    int
	answers []string // all equal
}

const faultLimit = 50

// newLoad creates a customer and starts the processes.
func newLoad(t *testing.T, url string, processes int) *load {
	t.Helper()
	account, key := customer(t, url)
	l := &load{t: t, url: url, key: key.Key, small: newKey(t, url, account, faultLimit), most: 20, serves: make([]atomic.Pointer[process], processes),
		keys: make(map[string]*asked), windows: make(map[string]int), statuses: make(map[int]int)}
	if !storetest.Long() { // else the clients of all tests at a time leave little of the machine to the faults
		l.pause = 40 * time.Millisecond
	}
	for i := range l.serves {
		l.serves[i].Store(startServe(t, url))
	}
	return l
}

// begin starts clients, each of which creates runs one after the other until end.
func (l *load) begin(clients int) {
	for c := range clients {
		l.wg.Go(func() {
			accounts := append([]string{l.key}, l.others...)
			for n := 0; !l.over.Load(); n++ {
				repetitions := 1 + rand.IntN(l.most)
				l.create(fmt.Sprintf("pair-%d-%d", c/2, n), &asked{ // two clients send each request, at the same time or later
					key: accounts[c/2%len(accounts)], body: strings.Replace(testRun, `"repetitions":3`, `"repetitions":`+strconv.Itoa(repetitions), 1), jobs: 2 * repetitions,
				})
				<-time.After(rand.N(l.pause + 1))
			}
		})
	}
	l.wg.Go(l.spend)
}

// end stops the clients after their last responses.
func (l *load) end() {
	l.over.Store(true)
	l.wg.Wait()
}

// create sends a request until it is acknowledged. A key that was used before is sent with the same body.
func (l *load) create(key string, a *asked) {
	l.mu.Lock()
	if before := l.keys[key]; before != nil {
		a = before
	} else {
		l.keys[key] = a
	}
	l.mu.Unlock()
	began := time.Now()
	for try := rand.IntN(2); ; try++ {
		got, err := l.ask(try, "POST", "", a.key, key, a.body)
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			l.cut.Add(1)
		}
		if err == nil && got.status == http.StatusAccepted {
			l.mu.Lock()
			defer l.mu.Unlock()
			a.answers = append(a.answers, got.body)
			l.last.run, l.last.key = member(l.t, got.body, "id"), a.key
			return
		}
		if time.Since(began) > patience {
			l.t.Errorf("key %s was not acknowledged for %v; last response: %d %s %v", key, patience, got.status, got.body, err)
			return
		}
		<-time.After(time.Millisecond + rand.N(max(4*l.pause, 10*time.Millisecond)))
	}
}

func (l *load) process(i int) *process { return l.serves[i%len(l.serves)].Load() }

// ask sends a request and checks its response: during a fault only success, 503 with Retry-After, 409 for a concurrent
// duplicate, and 429 for a read are allowed.
func (l *load) ask(try int, method, address, key, idempotencyKey, body string) (answer, error) {
	sent := time.Now()
	got, err := l.process(try).do(context.Background(), method, address, key, idempotencyKey, body)
	if err != nil {
		return answer{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[got.status]++
	l.slowest = max(l.slowest, time.Since(sent))
	switch {
	case got.status == 200 || got.status == 202 || got.status == 429 && method == "GET":
	case (got.status == 503 || got.status == 409 && strings.Contains(got.body, "idempotency_key_in_use")) && got.header.Get("Retry-After") != "":
	default:
		l.t.Errorf("%s %s %s: got %d %v %s", method, address, idempotencyKey, got.status, got.header, got.body)
	}
	return got, nil
}

// got waits until n further responses have a status.
func (l *load) got(status, n int) {
	l.t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.statuses[status]
	}
	before := count()
	storetest.Eventually(l.t, fmt.Sprintf("%d further responses with %d", n, status), func() bool { return count() >= before+n })
}

// acknowledged waits until the clients have got n further acknowledgements.
func (l *load) acknowledged(n int) { l.got(http.StatusAccepted, n) }

// spend sends more requests than the small limit admits, and counts the admitted ones of each window. It also reads
// acknowledged runs.
func (l *load) spend() {
	for try := 0; !l.over.Load(); try++ {
		got, err := l.ask(try, "GET", "?path=/v1/me", l.small.Key, "", "")
		l.mu.Lock()
		if err == nil && got.status == 200 {
			l.windows[got.header.Get("X-RateLimit-Reset")]++
		}
		last := l.last
		l.mu.Unlock()
		if last.run != "" {
			l.ask(try, "GET", "?path=/v1/runs/"+last.run, last.key, "", "")
		}
		<-time.After(max(l.pause/2, 5*time.Millisecond))
	}
}

// check compares the acknowledged requests with the database after all clients have ended: one run for each key, with
// its jobs, usage and response; no partial writes; and retries that succeed.
func (l *load) check(what string) {
	t := l.t
	t.Helper()
	pool := open(t, l.url)
	rows, err := pool.Query(t.Context(), `
		SELECT i.key, convert_from(i.answer, 'UTF8'), r.total_jobs
		FROM idempotency_records i JOIN measurement_runs r ON (r.account_id, r.id) = (i.account_id, i.run_id)`)
	must(t, err)
	stored := make(map[string]string) // responses, by key
	var key, answer string
	var jobs int
	_, err = pgx.ForEachRow(rows, []any{&key, &answer, &jobs}, func() error {
		stored[key] = answer
		if a := l.keys[key]; a == nil || jobs != a.jobs {
			t.Errorf("%s: key %s has a run of %d jobs, want the run of the request: %+v", what, key, jobs, a)
		}
		return nil
	})
	must(t, err)
	// No record is old enough to be purged, so each run has one.
	if runs := number(t, pool, `SELECT count(*) FROM measurement_runs`); runs != len(stored) {
		t.Errorf("%s: %d runs for %d keys", what, runs, len(stored))
	}
	acknowledged, retried := 0, 0
	for key, a := range l.keys {
		acknowledged += len(a.answers)
		for _, answer := range a.answers {
			if stored[key] != answer {
				t.Errorf("%s: key %s was acknowledged by %s and has the response %s", what, key, answer, stored[key])
			}
		}
		if retried++; retried > byForm(20, 200) {
			continue
		}
		// A retry, acknowledged or not, gets the stored response, or the first one.
		got, err := l.process(retried).patiently(t.Context(), "POST", "", a.key, key, a.body)
		if want := stored[key]; err != nil || got.status != 202 || want != "" && got.body != want ||
			!strings.Contains(got.body, fmt.Sprintf(`"total_jobs":%d,`, a.jobs)) {
			t.Errorf("%s: a retry of key %s got %d %s, %v; want 202 %s with %d jobs", what, key, got.status, got.body, err, want, a.jobs)
		}
	}
	for reset, admitted := range l.windows {
		used := number(t, pool, `SELECT COALESCE(max(used), 0) FROM api_rate_limit_buckets
			WHERE rate_limit = $1 AND window_start = to_timestamp($2::bigint - 60)`, faultLimit, reset)
		if admitted > faultLimit || used > 0 && admitted > used { // old windows are purged
			t.Errorf("%s: %d were admitted to the window until %s, which counts %d; the limit is %d", what, admitted, reset, used, faultLimit)
		}
	}
	t.Logf("%s: %d runs of %d keys, %d acknowledgements; slowest exchange %v; statuses %v",
		what, len(stored), len(l.keys), acknowledged, l.slowest.Round(time.Millisecond), l.statuses)
}
