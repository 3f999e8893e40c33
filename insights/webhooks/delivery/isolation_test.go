package delivery

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/storetest"
)

// TestIsolation: of 100 accounts' endpoints, 20 hang, 20 reset connections, 20 respond with 500 and 10 send a large body
// slowly. The others get their events while those hang, and no endpoint gets more than 4 requests at a time.
func TestIsolation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var mu sync.Mutex
	arrived := make(map[string]time.Time)
	now, most := make(map[string]int), 0
	r := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now[r.URL.Path]++
		most = max(most, now[r.URL.Path])
		arrived[r.Header.Get("webhook-id")] = time.Now()
		mu.Unlock()
		// ended is called before the client can end the request.
		ended := sync.OnceFunc(func() {
			mu.Lock()
			now[r.URL.Path]--
			mu.Unlock()
		})
		defer ended()
		var n int
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		switch {
		case n < 20:
			<-r.Context().Done()
		case n < 40:
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			conn.(*net.TCPConn).SetLinger(0)
			ended()
			conn.Close()
		case n < 60:
			w.WriteHeader(500)
		case n < 70:
			for written := 0; written < 1_000_000; written += 1000 {
				if written+1000 >= maxDrain {
					ended()
				}
				if _, err := w.Write(make([]byte, 1000)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
	})
	var accounts []store.ID
	for n := range 100 {
		account := f.NewAccount(t)
		f.endpoint(t, account, fmt.Sprintf("%s/%d", r.URL, n))
		accounts = append(accounts, account)
	}
	// An attempt that hangs ends later than the test waits for the healthy endpoints.
	d, stop := f.dispatch(t, func(d *Dispatcher) { d.sender.timeout = 2 * waitTimeout })
	const rounds = 10
	recorded := make(map[string]time.Time)
	pace := time.NewTicker(50 * time.Millisecond)
	defer pace.Stop()
	for range rounds {
		var causes []events.Cause
		for n, account := range accounts {
			c := completed(account)
			causes = append(causes, c)
			if n >= 70 {
				recorded[c.ID.Text("evt")] = time.Now()
			}
		}
		f.recordCauses(t, causes...)
		<-pace.C
	}
	var waits []time.Duration
	storetest.Eventually(t, "the healthy endpoints have their events", func() bool {
		mu.Lock()
		defer mu.Unlock()
		waits = nil
		for id, at := range recorded {
			if arrival, ok := arrived[id]; ok {
				waits = append(waits, arrival.Sub(at))
			}
		}
		return len(waits) == 30*rounds
	})
	slices.Sort(waits)
	t.Logf("median %v, 99th percentile %v", waits[len(waits)/2], waits[len(waits)*99/100])
	if p99 := waits[len(waits)*99/100]; storetest.Long() && p99 > time.Second {
		t.Errorf("99th percentile %v", p99)
	}
	mu.Lock()
	if most > 4 {
		t.Errorf("%d requests at a time to one endpoint", most)
	}
	mu.Unlock()
	if s := d.Stats(); s.InFlight > 100*4 {
		t.Errorf("%+v", s)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	for {
		r.CloseClientConnections() // ends the attempts that hang
		select {
		case <-stopped:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestBytesOfRound: a round reads events until those in memory have limits.bytes. Later rounds read the others.
func TestBytesOfRound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := newReceiver(t, nil)
	const accounts, each = 10, 20
	for range accounts {
		account := f.NewAccount(t)
		f.endpoint(t, account, r.URL)
		f.record(t, account, each)
	}
	d := f.dispatcher()
	d.turns.limits.bytes = 1000
	d.stopping = true // no attempt starts
	for range 2 {
		must(t, d.round(t.Context(), t.Context(), true))
		if n := d.Stats().Bytes; n < d.turns.limits.bytes || n > d.turns.limits.bytes+200 { // the last event
			t.Errorf("%d bytes in memory, the limit is %d", n, d.turns.limits.bytes)
		}
	}
	d.stopping = false
	run(t, d)
	storetest.Eventually(t, "all are received", func() bool { return r.received() == accounts*each })
}
