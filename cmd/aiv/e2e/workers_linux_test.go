package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store/storetest"
)

// TestFaultWorkers: 1,000 claims wait, or 200 in the short form, while workers settle 500 jobs in requests of 8 MiB, send
// slowly, read nothing, or vanish. Waiting claims take no connection to the database, memory stays bounded, and another
// worker's claims and settlements succeed. It is not parallel, because it measures the process.
func TestFaultWorkers(t *testing.T) {
	lasting := byForm(time.Duration(0), time.Minute)
	url, pool, _, key := databaseOfCustomer(t)
	questions := importBulk(t, pool)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	order := func(model, questions string, repetitions int) {
		body := strings.NewReplacer(`"m"`, model, `"q1","q2"`, questions, `"repetitions":3`, fmt.Sprintf(`"repetitions":%d`, repetitions)).Replace(testRun)
		name := fmt.Sprint("order-", rand.Int64())
		a, err := patiently(func() (answer, error) { return serve.do(t.Context(), "POST", "", key.Key, name, body) })
		if err != nil || a.status != 202 {
			t.Errorf("creating a run: %v %v", a, err)
		}
	}
	c := newCrowd(t, dispatch, newWorkerClient(t, url, dispatch))

	waiting := crowdOf(byForm(200, 1000))
	c.waits.repeat(waiting, c.waitForJobs)
	storetest.Eventually(t, "nine of ten claims wait", func() bool { // the others are between two waits
		return samples(t, dispatch.metrics(t))["aiv_claims_waiting"] >= float64(waiting)*0.9
	})
	// Tasks in the background use connections now and then, perhaps several at once. A claim that needed one while it
	// waits would use it all the time.
	wait(t, "connections to the database in use while claims wait", "^[0-3]$", func() string {
		return fmt.Sprint(number(t, pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'aiv' AND state <> 'idle' AND pid <> pg_backend_pid()`))
	})

	for range byForm(4, 8) { // 2,000 jobs each
		order(`"ms"`, questions, 20)
		order(`"m"`, questions, 20)
	}
	c.loads.repeat(crowdOf(8), c.settleMuch)
	begun := `{"jobs":[` + strings.Repeat(" ", 2<<20) // the first 2 MiB of a settlement
	many, waits := claimOf(`["s"]`, 500, 0, 60), claimOf(`["p"]`, 5, 30, 60)
	c.loads.repeat(crowdOf(60), func() { c.hold("/settle", 8<<20, begun, 15*time.Second) })
	c.loads.repeat(crowdOf(60), func() { c.hold("/claim", len(many), many, 10*time.Second) }) // reads nothing
	c.loads.repeat(crowdOf(15), func() { c.hold("/claim", len(waits), waits, rand.N(time.Second)) })
	c.loads.repeat(crowdOf(15), func() { c.hold("/settle", 2<<20, begun[:1<<20], rand.N(time.Second)) })
	c.loads.repeat(1, func() { // the other worker has jobs all the time
		c.pause(5 * time.Second)
		order(`"m"`, questions, 20)
	})
	worked := c.workOn(lasting)
	c.loads.end()
	c.loads.Wait()
	// On a slow machine each of them may have taken too long beside the others. One alone succeeds.
	storetest.Eventually(t, "a settlement of 8 MiB succeeds alone", func() bool {
		if c.largest.Load() == 0 {
			c.settleMuch()
		}
		return c.largest.Load() > 0
	})
	t.Logf("while %d claims waited, another worker settled %d jobs; %d settlements of 8 MiB; memory %d MiB",
		waiting, worked, c.largest.Load(), dispatch.memory(t, memoryBound()))
	c.waits.end()
	dispatch.kill() // SIGTERM would let idle connections and waiting claims end first
	c.waits.Wait()
}

// crowdOf returns how many clients of a kind there are: with the race detector, which makes the process several times
// slower, a fifth.
func crowdOf(n int) int {
	if raceEnabled {
		return max(1, n/5)
	}
	return n
}

// importBulk adds to testCatalog 100 long questions, whose ids it returns, and the model ms of the provider s.
func importBulk(t *testing.T, pool *pgxpool.Pool) (questions string) {
	t.Helper()
	var b strings.Builder
	b.WriteString(strings.NewReplacer(`"p"`, `"s"`, `"m"`, `"ms"`).Replace(testCatalog[:strings.Index(testCatalog, `{"kind":"question"`)]))
	for n := range 100 {
		fmt.Fprintf(&b, `{"kind":"question","id":"s%d","account_id":null,"text":"%s","language":"it","country":"IT","topic":"t","tags":[],"status":"active"}`+"\n",
			n, strings.Repeat("long ", 400))
		questions += fmt.Sprintf(`,"s%d"`, n)
	}
	importCatalog(t, pool, b.String(), "s")
	return questions[1:]
}

// A crowd is workers that put load on a dispatcher, each in its way.
type crowd struct {
	faults
	host         string
	w            *workerClient
	loads, waits group
	largest      atomic.Int64 // settlements of 8 MiB
}

// A group is workers that repeat what they do until they are stopped.
type group struct {
	sync.WaitGroup
	ctx context.Context
	end context.CancelFunc
}

func (g *group) repeat(workers int, f func()) {
	for range workers {
		g.Go(func() {
			for g.ctx.Err() == nil {
				f()
			}
		})
	}
}

func newCrowd(t *testing.T, p *process, w *workerClient) *crowd {
	w.http = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}
	t.Cleanup(w.http.CloseIdleConnections)
	c := &crowd{faults: faults{t: t}, host: p.host(), w: w}
	c.loads.ctx, c.loads.end = context.WithCancel(t.Context())
	c.waits.ctx, c.waits.end = context.WithCancel(t.Context())
	return c
}

// pause waits, at most until the loads are stopped.
func (c *crowd) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.loads.ctx.Done():
	}
}

// cutOff reports whether the connection of a request was cut.
func cutOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// claimed reports why a claim failed. In the short form, on a machine of any speed, the database or the transfer may take
// too long for it.
func (c *crowd) claimed(err error) {
	if err != nil && (storetest.Long() || !unavailable(err) && !cutOff(err)) {
		c.errorf("a claim: %v", err)
	}
	if unavailable(err) {
		c.pause(time.Second) // as Retry-After says
	}
}

// waitForJobs waits for jobs of a provider that has none.
func (c *crowd) waitForJobs() {
	if _, err := c.w.claimFor(`["w"]`, 500, 30, 60); c.waits.ctx.Err() == nil { // else the process ends
		c.claimed(err)
	}
}

// settleMuch claims 500 jobs and settles them in one request of nearly 8 MiB, twice.
func (c *crowd) settleMuch() {
	jobs, err := c.w.claimFor(`["p"]`, 500, 1, 60)
	c.claimed(err)
	if len(jobs) == 0 {
		c.pause(50 * time.Millisecond)
		return
	}
	const around = 300 // bytes beside the text
	text := strings.Repeat("x", min(200<<10, (8<<20-100)/len(jobs)-around))
	for range 2 {
		_, err := c.w.settle(context.Background(), jobs, func(job) string { return text })
		switch {
		case err == nil:
			c.largest.Add(1)
		case unavailable(err):
			c.pause(time.Second) // as Retry-After says
		case !cutOff(err): // refused before the body was read, or ended because another request needed memory and this one took long
			c.errorf("a settlement of 8 MiB: %v", err)
		}
	}
}

// hold sends the head and a part of the body of a request on a connection that takes little unread data, then a byte now
// and then, and disconnects after a while.
func (c *crowd) hold(route string, length int, part string, lasting time.Duration) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	conn, err := d.DialContext(context.Background(), "tcp", c.host)
	if err != nil {
		c.errorf("%v", err)
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "POST /worker/v1%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n", route, c.w.token)
	fmt.Fprintf(conn, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, part)
	for end := time.Now().Add(lasting); err == nil && time.Now().Before(end) && c.loads.ctx.Err() == nil; {
		c.pause(min(500*time.Millisecond, time.Until(end)))
		if len(part) < length {
			_, err = io.WriteString(conn, " ")
		}
	}
	if err != nil { // refused
		c.pause(2 * time.Second)
	}
}

// workOn claims and settles single jobs until it has settled ten, and for a while. Each request must succeed; in the
// short form the database may take too long for one, but none is refused for another's memory. It returns how many jobs
// were settled.
func (c *crowd) workOn(lasting time.Duration) (settled int) {
	began, last := time.Now(), time.Now() // last: when a job was settled
	for settled < 10 && time.Since(last) < patience || time.Since(began) < lasting {
		jobs, err := c.w.claimFor(`["p"]`, 1, 0, 60)
		var states []string
		if err == nil && len(jobs) > 0 {
			states, err = c.w.settle(c.t.Context(), jobs, answerText)
		}
		switch {
		case !storetest.Long() && unavailable(err) && !strings.Contains(err.Error(), "overloaded"):
			c.pause(time.Second)
		case err != nil || len(jobs) > 0 && states[0] != "settled":
			c.errorf("another worker: %v, %v", states, err)
			return settled
		case len(jobs) == 0:
			c.pause(50 * time.Millisecond)
		default:
			settled += len(jobs)
			last = time.Now()
		}
	}
	if settled < 10 {
		c.errorf("another worker settled %d jobs, and none in %v", settled, patience)
	}
	return settled
}
