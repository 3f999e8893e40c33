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
	url, pool, _, key := databaseOfCustomer(t)
	questions := importBulk(t, pool)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	order := func(model string) { // a run of 2,000 jobs
		body := strings.NewReplacer(`"m"`, model, `"q1","q2"`, questions, `"repetitions":3`, `"repetitions":20`).Replace(testRun)
		a, err := serve.patiently(t.Context(), "POST", "", key.Key, fmt.Sprint("order-", rand.Int64()), body)
		if err != nil || a.status != 202 {
			t.Errorf("creating a run: %v %v", a, err)
		}
	}
	c := &crowd{t: t, host: dispatch.host(), w: newWorkerClient(t, url, dispatch)}
	c.w.http = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}
	t.Cleanup(c.w.http.CloseIdleConnections)
	var loads, waits sync.WaitGroup
	var ended context.CancelFunc
	c.ctx, ended = context.WithCancel(t.Context())
	slower, bound := 1, byForm(maxMemory*3/2, maxMemory) // on a busy machine garbage is collected late
	if raceEnabled {
		slower, bound = 5, 10*maxMemory // it takes 5 to 10 times as much [go.dev/doc/articles/race_detector]
	}
	repeat := func(wg *sync.WaitGroup, clients int, f func()) {
		for range max(1, clients/slower) {
			wg.Go(func() {
				for c.ctx.Err() == nil {
					f()
				}
			})
		}
	}

	waiting := byForm(200, 1000)
	repeat(&waits, waiting, func() { c.claims(`["w"]`, 30) })        // a provider that has no jobs
	storetest.Eventually(t, "nine of ten claims wait", func() bool { // the others are between two waits
		return dispatch.metric(t, "aiv_claims_waiting") >= 0.9*float64(waiting/slower)
	})
	// Tasks in the background use connections now and then, perhaps several at once. A claim that needed one while it
	// waits would use it all the time.
	storetest.Eventually(t, "few connections to the database are in use while claims wait", func() bool {
		return number(t, pool, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'aiv' AND state <> 'idle' AND pid <> pg_backend_pid()`) <= 3
	})

	for range byForm(4, 8) {
		order(`"ms"`)
		order(`"m"`)
	}
	repeat(&loads, 8, c.settleMuch)
	begun := `{"jobs":[` + strings.Repeat(" ", 2<<20) // the first 2 MiB of a settlement
	const many = `{"providers":["s"],"limit":500,"wait_seconds":0,"lease_seconds":60}`
	const five = `{"providers":["p"],"limit":5,"wait_seconds":30,"lease_seconds":60}`
	repeat(&loads, 60, func() { c.hold("/settle", 8<<20, begun, 15*time.Second) })
	repeat(&loads, 60, func() { c.hold("/claim", len(many), many, 10*time.Second) }) // reads nothing
	repeat(&loads, 15, func() { c.hold("/claim", len(five), five, rand.N(time.Second)) })
	repeat(&loads, 15, func() { c.hold("/settle", 2<<20, begun[:1<<20], rand.N(time.Second)) })
	repeat(&loads, 1, func() { // the other worker has jobs all the time
		c.pause(5 * time.Second)
		order(`"m"`)
	})
	began, worked := time.Now(), 0
	storetest.Eventually(t, "another worker settles ten jobs, and goes on for a minute in the long form", func() bool {
		jobs, err := c.w.claim(`["p"]`, 1, 0, 60)
		if err == nil && len(jobs) > 0 {
			jobs, err = c.w.settle(t.Context(), jobs, answerText)
		}
		switch {
		case !storetest.Long() && unavailable(err) && !strings.Contains(err.Error(), "overloaded"):
			c.pause(time.Second) // the database took too long; no request is refused for another's memory
		case err != nil || len(jobs) > 0 && jobs[0].State != "settled":
			t.Errorf("another worker: %v, %v", jobs, err)
			return true
		default:
			worked += len(jobs)
		}
		return worked >= 10 && time.Since(began) >= byForm(0, time.Minute)
	})
	ended()
	loads.Wait()
	// On a slow machine each of them may have taken too long beside the others. One alone succeeds.
	storetest.Eventually(t, "a settlement of 8 MiB succeeds alone", func() bool {
		if c.largest.Load() == 0 {
			c.settleMuch()
		}
		return c.largest.Load() > 0
	})
	t.Logf("another worker settled %d jobs; %d settlements of 8 MiB; memory %d MiB", worked, c.largest.Load(), dispatch.memory(t, bound))
	dispatch.kill() // SIGTERM would let idle connections and waiting claims end first
	waits.Wait()
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

// A crowd is workers that put load on a dispatcher, each in its way, until ctx is done.
type crowd struct {
	t       *testing.T
	ctx     context.Context
	host    string
	w       *workerClient
	largest atomic.Int64 // settlements of 8 MiB
}

// pause waits, at most until the load ends.
func (c *crowd) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
	}
}

// tolerated waits after a request that got 503, as Retry-After says, and reports whether an error is one that a large
// request may get: it is refused before its body is read, or ended because another one needs memory and it takes long.
func (c *crowd) tolerated(err error) bool {
	if unavailable(err) {
		c.pause(time.Second)
	}
	return err == nil || unavailable(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// claims claims up to 500 jobs of a provider. In the short form, on a machine of any speed, the database or the transfer
// may take too long for it.
func (c *crowd) claims(provider string, wait int) []job {
	jobs, err := c.w.claim(provider, 500, wait, 60)
	if c.ctx.Err() == nil && (err != nil && storetest.Long() || !c.tolerated(err)) {
		c.t.Errorf("a claim: %v", err)
	}
	return jobs
}

// settleMuch claims 500 jobs and settles them in one request of nearly 8 MiB, twice.
func (c *crowd) settleMuch() {
	jobs := c.claims(`["p"]`, 1)
	if len(jobs) == 0 {
		c.pause(50 * time.Millisecond)
		return
	}
	const around = 300 // bytes beside the text
	text := strings.Repeat("x", min(200<<10, (8<<20-100)/len(jobs)-around))
	for range 2 {
		if _, err := c.w.settle(context.Background(), jobs, func(job) string { return text }); err == nil {
			c.largest.Add(1)
		} else if !c.tolerated(err) {
			c.t.Errorf("a settlement of 8 MiB: %v", err)
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
		c.t.Errorf("%v", err)
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "POST /worker/v1%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n", route, c.w.token)
	fmt.Fprintf(conn, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, part)
	for end := time.Now().Add(lasting); err == nil && time.Now().Before(end) && c.ctx.Err() == nil; {
		c.pause(min(500*time.Millisecond, time.Until(end)))
		if len(part) < length {
			_, err = io.WriteString(conn, " ")
		}
	}
	if err != nil { // refused
		c.pause(2 * time.Second)
	}
}
