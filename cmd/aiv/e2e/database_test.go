package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

// Bounds that the long forms check. The short forms run beside other tests, on machines of any speed: they check what
// happens, and in which order.
const (
	// bounded is the bound of a response while the process cannot connect to the database.
	bounded = 5 * time.Second
	// unanswered is the bound while the database accepts connections but does not respond.
	unanswered = 35 * time.Second
	// behindLock is the bound while another session holds a lock: a request may wait for the batch in flight and for
	// its own batch, 7 s each to be counted, or 10 s each to be written and written again by itself.
	behindLock = 22 * time.Second
	// recovery is how soon after the database's return requests are served again.
	recovery = 2 * time.Second
)

// byForm returns what the short or the long form of a test has.
func byForm[T any](short, long T) T {
	if storetest.Long() {
		return long
	}
	return short
}

// TestFaultDatabase breaks PostgreSQL in each way, again and again, while clients create runs through two processes.
func TestFaultDatabase(t *testing.T) {
	t.Parallel()
	c := storetest.NewCluster(t, "max_connections=60") // two processes use 48
	l := newLoad(t, c.URL(), 2)
	clients := byForm(4, 8)
	l.begin(clients)
	l.recovered(t)
	for _, fault := range []struct {
		name  string
		long  int // times; the short form does it once
		bound time.Duration
		hit   func(t *testing.T, c *storetest.Cluster, l *load)
	}{
		{"kill -9, back at once", 20, bounded, func(t *testing.T, c *storetest.Cluster, _ *load) { crash(t, c) }},
		{"kill -9, away", 3, bounded, func(t *testing.T, c *storetest.Cluster, l *load) { away(t, c, l, c.Kill) }},
		{"stopped, away", 3, bounded, func(t *testing.T, c *storetest.Cluster, l *load) { away(t, c, l, c.Stop) }},
		{"connections cut", 50, bounded, func(t *testing.T, c *storetest.Cluster, _ *load) { c.Exec(t, "aiv", cut) }},
		{"max_connections", 3, bounded, takeConnections},
		{"frozen", 3, unanswered, freeze},
	} {
		t.Run(fault.name, func(t *testing.T) {
			times := byForm(1, fault.long)
			l.anew()
			var slowest time.Duration
			for range times {
				l.acknowledged(5)
				fault.hit(t, c, l)
				slowest = max(slowest, l.recovered(t))
			}
			longest := l.survived(t, fault.bound)
			t.Logf("%s: %d times, back %v after the database at the latest; longest wait for an answer %v", fault.name, times,
				slowest.Round(time.Millisecond), longest.Round(time.Millisecond))
		})
	}
	l.end()
	l.check("all of these")
}

// anew resets the measured times.
func (l *load) anew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest, l.slowest = 0, 0
}

func crash(t *testing.T, c *storetest.Cluster) {
	c.Kill()
	c.Start(t)
}

func away(t *testing.T, c *storetest.Cluster, l *load, end func()) {
	end()
	l.suffer(10 * time.Second)
	c.Start(t)
}

func freeze(_ *testing.T, c *storetest.Cluster, l *load) {
	c.Freeze()
	defer c.Thaw()
	l.suffer(10 * time.Second)
}

const cut = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'aiv' AND pid <> pg_backend_pid()`

// takeConnections takes all of the server's connections and keeps them for a while.
func takeConnections(t *testing.T, c *storetest.Cluster, l *load) {
	var taken []*pgx.Conn
	defer func() {
		for _, conn := range taken {
			conn.Close(context.Background())
		}
	}()
	storetest.Eventually(t, "aiv has no connections", func() bool {
		for {
			conn, err := pgx.Connect(t.Context(), c.URL())
			if err != nil {
				break
			}
			taken = append(taken, conn)
		}
		left := 1
		if len(taken) > 0 {
			taken[0].QueryRow(t.Context(), `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'aiv'`).Scan(&left)
		}
		return left == 0
	})
	l.suffer(10 * time.Second)
}

// recovered waits until each process serves reads and writes again, and returns how long that took, which the long form
// bounds.
func (l *load) recovered(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	for _, p := range *l.serves.Load() {
		storetest.Eventually(t, p.cmd.String()+" serves again", func() bool {
			read, err := p.do(t.Context(), "GET", "?path=/v1/runs&limit=1", l.key, "", "")
			if err != nil || read.status != http.StatusOK {
				return false
			}
			written, err := p.do(t.Context(), "POST", "", l.key, "probe", testRun)
			return err == nil && written.status == http.StatusAccepted
		})
	}
	took := time.Since(began)
	if storetest.Long() && took > recovery {
		t.Errorf("served again after %v, want %v at most", took, recovery)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys["probe"] = &asked{key: l.key, body: testRun, jobs: 6}
	return took
}

// survived checks that no process ended and, in the long form, that no response took longer than bound. It returns the
// longest time until a request was acknowledged.
func (l *load) survived(t *testing.T, bound time.Duration) time.Duration {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range *l.serves.Load() {
		p.isRunning(t)
	}
	if storetest.Long() && l.slowest > bound {
		t.Errorf("a response took %v, want %v at most", l.slowest, bound)
	}
	return l.longest
}

// suffer waits until a request gets 503 during a fault, which the long form lets last for a while.
func (l *load) suffer(lasting time.Duration) {
	l.t.Helper()
	l.refused()
	if storetest.Long() {
		<-time.After(lasting)
	}
}
