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
)

// A crowd is workers that put load on a dispatcher, each in its way, until they are stopped.
type crowd struct {
	t     *testing.T
	p     *process
	token string
	http  http.Client

	loads, waits         sync.WaitGroup
	stopLoads, stopWaits chan struct{}

	largest, refused, woken atomic.Int64 // settlements of 8 MiB, those of them that got 503, and waiting claims that got jobs
}

func newCrowd(t *testing.T, p *process, token string) *crowd {
	c := &crowd{t: t, p: p, token: token, stopLoads: make(chan struct{}), stopWaits: make(chan struct{})}
	c.http = http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// repeat does f until its group is stopped.
func (c *crowd) repeat(group *sync.WaitGroup, f func()) {
	stop := c.stopLoads
	if group == &c.waits {
		stop = c.stopWaits
	}
	group.Go(func() {
		for {
			f()
			select {
			case <-stop:
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
	case <-c.stopLoads:
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

// waitForJobs waits for jobs of provider w, and keeps those that it gets.
func (c *crowd) waitForJobs() {
	jobs, err := c.send("/claim", claimOf("w", 500, 30))
	if len(jobs) > 0 {
		c.woken.Add(1)
	}
	select {
	case <-c.stopWaits: // the process ends
	default:
		if err != nil {
			c.t.Errorf("a waiting claim: %v", err)
		}
	}
}

// settleMuch claims 500 jobs and settles them in one request of nearly 8 MiB, twice.
func (c *crowd) settleMuch() {
	jobs, err := c.send("/claim", claimOf("p", 500, 1))
	if err != nil {
		c.t.Errorf("a claim of 500 jobs: %v", err)
		return
	}
	if len(jobs) == 0 {
		c.pause(50 * time.Millisecond)
		return
	}
	const around = 250 // bytes beside the text
	text := strings.Repeat("x", min(200<<10, (8<<20-100)/len(jobs)-around))
	var b strings.Builder
	b.Grow(8 << 20) // a builder that grows copies this several times
	b.WriteString(`{"jobs":[`)
	for i, j := range jobs {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"id":%q,"attempt":%d,"outcome":"completed","answer":{"text":"%s","citations":[],"search_queries":[],"model_version":null,"answered_at":"2026-01-01T00:00:00Z"}}`,
			j.ID, j.Attempt, text)
	}
	b.WriteString(`]}`)
	for range 2 {
		_, err := c.send("/settle", b.String())
		if e, ok := errors.AsType[*refusal](err); ok && e.status == http.StatusServiceUnavailable && e.retryAfter != "" {
			c.refused.Add(1)
			c.pause(time.Second) // as Retry-After says
			continue
		}
		// Refused before the body was read, or ended because another request needed memory and this one took long.
		ended := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
		if err != nil && !ended {
			c.t.Errorf("a settlement of 8 MiB: %v", err)
		}
		if err == nil {
			c.largest.Add(1)
		}
	}
}

// sendValues sends as many JSON values as a request may have.
func (c *crowd) sendValues() {
	c.send("/settle", `{"jobs":[`+strings.Repeat("0,", 999_990)+`0]}`)
	c.pause(100 * time.Millisecond)
}

// dial opens a connection that takes little unread data.
func (c *crowd) dial() net.Conn {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
	}}
	conn, err := d.DialContext(context.Background(), "tcp", c.p.host())
	if err != nil {
		c.t.Error(err)
		return nil
	}
	conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func (c *crowd) head(route string, length int) string {
	return "POST /worker/v1" + route + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + c.token +
		"\r\nContent-Type: application/json\r\nContent-Length: " + fmt.Sprint(length) + "\r\n\r\n"
}

// spaces returns 2 MiB, which all clients share: to make it costs more than to send it.
var spaces = sync.OnceValue(func() string { return strings.Repeat(" ", 2<<20) })

// sendSlowly sends a quarter of a large settlement, then a byte now and then.
func (c *crowd) sendSlowly() {
	conn := c.dial()
	if conn == nil {
		return
	}
	defer conn.Close()
	const length = 8 << 20
	io.WriteString(conn, c.head("/settle", length)+`{"jobs":[`)
	io.WriteString(conn, spaces())
	for range 30 {
		if _, err := io.WriteString(conn, " "); err != nil { // refused
			c.pause(2 * time.Second)
			return
		}
		c.pause(500 * time.Millisecond)
	}
}

// readNothing claims 500 jobs with long questions and does not read them.
func (c *crowd) readNothing() {
	conn := c.dial()
	if conn == nil {
		return
	}
	defer conn.Close()
	body := claimOf("s", 500, 0)
	io.WriteString(conn, c.head("/claim", len(body))+body)
	c.pause(10 * time.Second)
}

// vanish sends a claim that waits, or half a settlement, and disconnects.
func (c *crowd) vanish() {
	conn := c.dial()
	if conn == nil {
		return
	}
	defer conn.Close()
	if rand.IntN(2) == 0 {
		body := claimOf("p", 5, 30)
		io.WriteString(conn, c.head("/claim", len(body))+body)
	} else {
		io.WriteString(conn, c.head("/settle", 2<<20)+`{"jobs":[`)
		io.WriteString(conn, spaces()[:1<<20])
	}
	c.pause(rand.N(time.Second))
}

// workOn claims and settles single jobs until it has settled ten, and for a while. Each request must succeed. It
// returns how many jobs were settled, and the longest time that a claim and a settlement took.
func (c *crowd) workOn(lasting time.Duration) (settled int, longest time.Duration) {
	w := &workerClient{c.p.base, c.token}
	for began := time.Now(); settled < 10 && time.Since(began) < patience || time.Since(began) < lasting; {
		began := time.Now()
		jobs, err := c.send("/claim", claimOf("p", 1, 0))
		var states []string
		if err == nil && len(jobs) > 0 {
			states, err = w.settle(c.t.Context(), jobs)
		}
		if err != nil || len(jobs) > 0 && states[0] != "settled" {
			c.t.Errorf("another worker: %v, %v", states, err)
			return settled, longest
		}
		settled += len(jobs)
		longest = max(longest, time.Since(began))
		if len(jobs) == 0 {
			c.pause(50 * time.Millisecond)
		}
	}
	if settled < 10 {
		c.t.Errorf("another worker settled %d jobs in %v", settled, patience)
	}
	return settled, longest
}
