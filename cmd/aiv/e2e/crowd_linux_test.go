package e2e

import (
	"context"
	"encoding/json"
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

	"aiv/store/storetest"
)

// A crowd is workers that put load on a dispatcher, each in its way, until they are stopped.
type crowd struct {
	faults
	p     *process
	token string
	http  http.Client

	loads, waits group

	largest, refused, woken atomic.Int64 // settlements of 8 MiB, those of them that got 503, and waiting claims that got jobs
}

func newCrowd(t *testing.T, p *process, token string) *crowd {
	c := &crowd{faults: faults{t: t}, p: p, token: token, loads: group{ended: make(chan struct{})}, waits: group{ended: make(chan struct{})}}
	c.http = http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// A group is workers that repeat what they do until ended is closed.
type group struct {
	sync.WaitGroup
	ended chan struct{}
}

func (g *group) repeat(f func()) {
	g.Go(func() {
		for {
			f()
			select {
			case <-g.ended:
				return
			default:
			}
		}
	})
}

// pause waits, at most until the loads are stopped.
func (c *crowd) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.loads.ended:
	}
}

// send sends a request and returns the jobs of the response.
func (c *crowd) send(route, body string) ([]job, error) {
	text, err := post(context.Background(), &c.http, c.p.base+route, c.token, body)
	if err != nil {
		return nil, err
	}
	var out struct{ Jobs []job }
	err = json.Unmarshal(text, &out)
	return out.Jobs, err
}

func claimOf(provider string, limit, wait int) string {
	return fmt.Sprintf(`{"limit":%d,"lease_seconds":60,"providers":[%q],"wait_seconds":%d}`, limit, provider, wait)
}

// claimed reports why a claim failed. In the short form, on a machine of any speed, the database or the transfer may take
// too long for it.
func (c *crowd) claimed(what string, err error) {
	if err != nil && (storetest.Long() || !unavailable(err) && !cutOff(err)) {
		c.errorf("%s: %v", what, err)
	}
	if unavailable(err) {
		c.pause(time.Second) // as Retry-After says
	}
}

// cutOff reports whether the connection of a request was cut.
func cutOff(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// waitForJobs waits for jobs of provider w, and keeps those that it gets.
func (c *crowd) waitForJobs() {
	jobs, err := c.send("/claim", claimOf("w", 500, 30))
	if len(jobs) > 0 {
		c.woken.Add(1)
	}
	select {
	case <-c.waits.ended: // the process ends
	default:
		c.claimed("a waiting claim", err)
	}
}

// settleMuch claims 500 jobs and settles them in one request of nearly 8 MiB, twice.
func (c *crowd) settleMuch() {
	jobs, err := c.send("/claim", claimOf("p", 500, 1))
	c.claimed("a claim of 500 jobs", err)
	if len(jobs) == 0 {
		c.pause(50 * time.Millisecond)
		return
	}
	const around = 250 // bytes beside the text
	text := strings.Repeat("x", min(200<<10, (8<<20-100)/len(jobs)-around))
	var b strings.Builder
	b.Grow(8 << 20) // a builder that grows copies this several times
	separator := `{"jobs":[`
	for _, j := range jobs {
		fmt.Fprintf(&b, `%s{"id":%q,"attempt":%d,"outcome":"completed","answer":{"text":"%s",`, separator, j.ID, j.Attempt, text)
		b.WriteString(`"citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}}`)
		separator = ","
	}
	b.WriteString(`]}`)
	for range 2 {
		_, err := c.send("/settle", b.String())
		if unavailable(err) {
			c.refused.Add(1)
			c.pause(time.Second) // as Retry-After says
			continue
		}
		// Refused before the body was read, or ended because another request needed memory and this one took long.
		if err != nil && !cutOff(err) {
			c.errorf("a settlement of 8 MiB: %v", err)
		}
		if err == nil {
			c.largest.Add(1)
		}
	}
}

// hold sends the head and a part of the body of a request on a connection that takes little unread data, calls during,
// and disconnects.
func (c *crowd) hold(route string, length int, part string, during func(net.Conn)) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	conn, err := d.DialContext(context.Background(), "tcp", c.p.host())
	if err != nil {
		c.errorf("%v", err)
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "POST /worker/v1%s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n", route, c.token)
	fmt.Fprintf(conn, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, part)
	during(conn)
}

// begun returns the first 2 MiB of a settlement, which all clients share: to make it costs more than to
// send it.
var begun = sync.OnceValue(func() string { return `{"jobs":[` + strings.Repeat(" ", 2<<20) })

// sendSlowly sends a quarter of a large settlement, then a byte now and then.
func (c *crowd) sendSlowly() {
	c.hold("/settle", 8<<20, begun(), func(conn net.Conn) {
		for range 30 {
			if _, err := io.WriteString(conn, " "); err != nil { // refused
				c.pause(2 * time.Second)
				return
			}
			c.pause(500 * time.Millisecond)
		}
	})
}

// readNothing claims 500 jobs with long questions and does not read them.
func (c *crowd) readNothing() {
	body := claimOf("s", 500, 0)
	c.hold("/claim", len(body), body, func(net.Conn) { c.pause(10 * time.Second) })
}

// vanish sends a claim that waits, or half a settlement, and disconnects.
func (c *crowd) vanish() {
	route, length, part := "/settle", 2<<20, begun()[:1<<20]
	if rand.IntN(2) == 0 {
		route, part = "/claim", claimOf("p", 5, 30)
		length = len(part)
	}
	c.hold(route, length, part, func(net.Conn) { c.pause(rand.N(time.Second)) })
}

// workOn claims and settles single jobs until it has settled ten, and for a while. Each request must succeed; in the
// short form the database may take too long for one, but none is refused for another's memory. It returns how many jobs
// were settled, and the longest time that a claim and a settlement took.
func (c *crowd) workOn(lasting time.Duration) (settled int, longest time.Duration) {
	w := &workerClient{c.p.base, c.token}
	began, last := time.Now(), time.Now() // last: when a job was settled
	for settled < 10 && time.Since(last) < patience || time.Since(began) < lasting {
		began := time.Now()
		jobs, err := c.send("/claim", claimOf("p", 1, 0))
		var states []string
		if err == nil && len(jobs) > 0 {
			states, err = w.settle(c.t.Context(), jobs)
		}
		if !storetest.Long() && unavailable(err) && !strings.Contains(err.Error(), "overloaded") {
			c.pause(time.Second)
			continue
		}
		if err != nil || len(jobs) > 0 && states[0] != "settled" {
			c.errorf("another worker: %v, %v", states, err)
			return settled, longest
		}
		if settled += len(jobs); len(jobs) > 0 {
			last = time.Now()
		}
		longest = max(longest, time.Since(began))
		if len(jobs) == 0 {
			c.pause(50 * time.Millisecond)
		}
	}
	if settled < 10 {
		c.errorf("another worker settled %d jobs, and none in %v", settled, patience)
	}
	return settled, longest
}
