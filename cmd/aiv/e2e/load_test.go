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
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/storetest"
)

// A load is the traffic of a fault test: clients that create runs, each of which retries its key until it succeeds, and
// one client that exceeds a small limit. It records the acknowledged requests and compares them with the database at
// the end.
type load struct {
	url    string // of the database
	key    string
	others []string // keys of further accounts
	small  madeKey  // limited
	limit  int
	serves atomic.Pointer[[]*process]
	pause  time.Duration // the longest of a client between two requests

	wg   sync.WaitGroup
	over atomic.Bool
	faults
	cut atomic.Int64 // requests to create a run that were sent and got no response

	mu       sync.Mutex
	keys     map[string]*asked
	windows  map[string]int // by reset: admitted to the small limit
	statuses map[int]int
	longest  time.Duration // time until one key was acknowledged
	slowest  time.Duration // of one exchange
	run      string        // the last that was acknowledged
	runKey   string        // of its account
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
	account, key := customer(t, url, 1_000_000)
	l := &load{faults: faults{t: t}, url: url, key: key.Key, limit: faultLimit, small: newKey(t, url, account, faultLimit),
		keys: make(map[string]*asked), windows: make(map[string]int), statuses: make(map[int]int)}
	if !storetest.Long() { // else the clients of all tests at a time leave little of the machine to the faults
		l.pause = 40 * time.Millisecond
	}
	serves := make([]*process, processes)
	for i := range serves {
		serves[i] = startServe(t, url)
	}
	l.serves.Store(&serves)
	return l
}

// begin starts clients, each of which creates runs one after the other until end.
func (l *load) begin(clients int) {
	for c := range clients {
		l.wg.Go(func() {
			accounts := append([]string{l.key}, l.others...)
			for n := 0; !l.over.Load(); n++ {
				repetitions := 1 + rand.IntN(20)
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
		if errors.Is(err, errCutOff) {
			l.cut.Add(1)
		}
		if err == nil && got.status == http.StatusAccepted {
			l.mu.Lock()
			a.answers = append(a.answers, got.body)
			l.run, l.runKey = got.body[len(`{"id":"`):][:30], a.key
			l.longest = max(l.longest, time.Since(began))
			l.mu.Unlock()
			return
		}
		if time.Since(began) > patience {
			l.errorf("key %s was not acknowledged for %v; last response: %d %s %v", key, patience, got.status, got.body, err)
			return
		}
		<-time.After(time.Millisecond + rand.N(max(4*l.pause, 10*time.Millisecond)))
	}
}

func (l *load) process(i int) *process {
	serves := *l.serves.Load()
	return serves[i%len(serves)]
}

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
		l.errorf("%s %s %s: got %d %v %s", method, address, idempotencyKey, got.status, got.header, got.body)
	}
	return got, nil
}

// faults are those that clients report.
type faults struct {
	t        *testing.T
	reported atomic.Int64
}

// errorf reports a fault. Faults after the tenth only fail the test, so that its output can be read.
func (f *faults) errorf(format string, args ...any) {
	f.t.Helper()
	if f.reported.Add(1) <= 10 {
		f.t.Errorf(format, args...)
	} else {
		f.t.Fail()
	}
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

// refused waits until a request gets 503.
func (l *load) refused() { l.got(http.StatusServiceUnavailable, 1) }

// spend sends more requests than the small limit admits, and counts the admitted ones of each window.
func (l *load) spend() {
	for try := 0; !l.over.Load(); try++ {
		got, err := l.ask(try, "GET", "?path=/v1/me", l.small.Key, "", "")
		if err == nil && got.status == 200 {
			l.mu.Lock()
			l.windows[got.header.Get("X-RateLimit-Reset")]++
			l.mu.Unlock()
		}
		if run, key := l.known(); run != "" { // an acknowledged run can be read
			l.ask(try, "GET", "?path=/v1/runs/"+run, key, "", "")
		}
		<-time.After(max(l.pause/2, 5*time.Millisecond))
	}
}

// known returns the id of an acknowledged run and the key of its account, if there is one.
func (l *load) known() (run, key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.run, l.runKey
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
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[written])
	must(t, err)
	byKey := make(map[string]written, len(found))
	for _, w := range found {
		byKey[w.Key] = w
		if a := l.keys[w.Key]; a == nil || w.TotalJobs != a.jobs {
			l.errorf("%s: key %s has a run of %d jobs, want that of the request: %+v", what, w.Key, w.TotalJobs, a)
		}
	}
	acknowledged, lost, twice := 0, 0, 0
	for key, a := range l.keys {
		acknowledged += len(a.answers)
		for _, answer := range a.answers {
			if w, ok := byKey[key]; !ok {
				lost++
				l.errorf("%s: key %s was acknowledged and has no run", what, key)
			} else if w.Answer != answer {
				twice++
				l.errorf("%s: key %s was acknowledged by %s and has the response %s", what, key, answer, w.Answer)
			}
		}
	}
	// No record is old enough to be purged, so each run has one.
	if runs := number(t, pool, `SELECT count(*) FROM measurement_runs`); runs != len(found) {
		twice += max(0, runs-len(found))
		t.Errorf("%s: %d runs for %d keys", what, runs, len(found))
	}
	over := 0
	for reset, admitted := range l.windows {
		over += max(0, admitted-l.limit)
		if admitted > l.limit {
			t.Errorf("%s: %d were admitted to the window until %s, the limit is %d", what, admitted, reset, l.limit)
		}
	}
	l.counted(what, pool)
	l.retried(what, byKey)
	t.Logf("%s: %d runs of %d keys, %d acknowledgements: lost %d, twice %d, over the limit %d; longest time until acknowledged %v, slowest exchange %v; statuses %v",
		what, len(found), len(l.keys), acknowledged, lost, twice, over, l.longest.Round(time.Millisecond), l.slowest.Round(time.Millisecond), l.statuses)
}

// written is what the database has of a request.
type written struct {
	Key       string
	Answer    string
	TotalJobs int
}

// counted checks that a window counts at least the requests that were admitted in it.
func (l *load) counted(what string, pool *pgxpool.Pool) {
	l.t.Helper()
	var reset, used int
	must(l.t, pool.QueryRow(l.t.Context(), `SELECT extract(epoch FROM window_start)::bigint + 60, used FROM api_rate_limit_buckets
		WHERE rate_limit = $1 ORDER BY window_start DESC LIMIT 1`, l.limit).Scan(&reset, &used))
	if admitted := l.windows[strconv.Itoa(reset)]; admitted > used {
		l.t.Errorf("%s: %d were admitted in a window that counts %d", what, admitted, used)
	}
}

// retried sends some keys again, acknowledged or not: each gets its stored response, or its first one.
func (l *load) retried(what string, stored map[string]written) {
	l.t.Helper()
	n, most := 0, byForm(20, 200)
	for key, a := range l.keys {
		if n++; n > most {
			return
		}
		got, err := patiently(func() (answer, error) { return l.process(n).do(l.t.Context(), "POST", "", a.key, key, a.body) })
		if want := stored[key].Answer; err != nil || got.status != 202 || want != "" && got.body != want {
			l.errorf("%s: a retry of key %s got %d %s, %v; want 202 %s", what, key, got.status, got.body, err, want)
		}
		if jobs := fmt.Sprintf(`"total_jobs":%d,`, a.jobs); !strings.Contains(got.body, jobs) {
			l.errorf("%s: a retry of key %s returned %s, want a run with %s", what, key, got.body, jobs)
		}
	}
}
