package delivery

import (
	"time"
)

// turns decides which delivery is attempted next. Accounts take turns, and within an account its endpoints do. It is
// not safe for concurrent use.
type turns struct {
	limits    limits
	queue     []*account // with deliveries that may be ready
	inFlight  int
	unhealthy int // in flight to endpoints whose latest attempt failed
	bytes     int // of the bodies of loaded deliveries
}

// limits bounds what a Dispatcher does at a time. The limits per account and per endpoint are what the API promises,
// across all processes.
type limits struct {
	inFlight    int // requests of this process
	perAccount  int
	perEndpoint int
	accounts    int // that this process owns
	bytes       int // of event data in memory
	readyAge    time.Duration
}

func newLimits(inFlight int) limits {
	return limits{inFlight: inFlight, perAccount: 16, perEndpoint: 4, accounts: 1024, bytes: 48 << 20, readyAge: maxReadyAge}
}

// Deliveries that have been ready for longer than maxReadyAge are read again, so that a changed or deleted endpoint, or
// a deleted event, takes effect soon.
const maxReadyAge = time.Second

// enqueue queues an account whose deliveries may be ready, unless it is queued.
func (t *turns) enqueue(a *account) {
	if !a.queued {
		a.queued = true
		t.queue = append(t.queue, a)
	}
}

// next returns the delivery whose turn it is and counts it as in flight, or nil.
func (t *turns) next(now time.Time) *delivery {
	for len(t.queue) > 0 && t.inFlight < t.limits.inFlight {
		a := t.queue[0]
		t.queue = t.queue[1:]
		a.queued = false
		if d := t.nextOf(a, now); d != nil {
			t.enqueue(a)
			return d
		}
	}
	return nil
}

// nextOf returns the delivery of an account whose turn it is and counts it as in flight, or nil. An attempt starts only
// if it ends before the lease does. A quarter of the process's requests is kept for accounts with none in flight, so
// that endpoints that hang, and have not failed yet, leave requests to others.
func (t *turns) nextOf(a *account, now time.Time) *delivery {
	if a.inFlight >= t.limits.perAccount || a.leaseEnd.Sub(now) < attemptTimeout+2*drainTimeout {
		return nil
	}
	if a.inFlight > 0 && t.inFlight >= t.limits.inFlight-t.limits.inFlight/4 {
		return nil // the end of one of its requests enqueues it again
	}
	for range a.endpoints {
		e := a.endpoints[a.turn%len(a.endpoints)]
		a.turn++
		t.dropStale(e, now)
		if len(e.ready) == 0 || !t.mayStart(e) {
			continue
		}
		d := e.ready[0]
		e.ready = e.ready[1:]
		e.inFlight++
		a.inFlight++
		t.inFlight++
		if e.unhealthy {
			t.unhealthy++
		}
		return d
	}
	return nil
}

// mayStart reports whether another request may go to an endpoint. An endpoint whose latest attempt failed gets one
// request at a time, and all such endpoints together half of the process's requests, so that they do not delay others.
func (t *turns) mayStart(e *endpoint) bool {
	if e.unhealthy {
		return e.inFlight < 1 && t.unhealthy < t.limits.inFlight/2
	}
	return e.inFlight < t.limits.perEndpoint
}

// needs reports whether an endpoint can take more deliveries than are ready.
func (t *turns) needs(e *endpoint) bool {
	if e.stopped() || e.unhealthy && !t.mayStart(e) {
		return false
	}
	return t.bytes < t.limits.bytes && len(e.ready) <= e.fetch.size/2
}

// end counts an attempt as ended. wasUnhealthy is the endpoint's health when the attempt began.
func (t *turns) end(e *endpoint, wasUnhealthy bool) {
	e.inFlight--
	e.account.inFlight--
	t.inFlight--
	if wasUnhealthy {
		t.unhealthy--
	}
}

// load adds a delivery that was read.
func (t *turns) load(d *delivery) {
	e := d.endpoint
	e.loaded[d.event] = true
	e.account.loaded++
	e.ready = append(e.ready, d)
	t.bytes += len(d.body)
}

// unload removes a delivery whose outcome is written, or that is to be read again.
func (t *turns) unload(d *delivery) {
	delete(d.endpoint.loaded, d.event)
	d.endpoint.account.loaded--
	t.bytes -= len(d.body)
}

// dropStale drops the ready deliveries if the first is older than limits.readyAge. The endpoint does not keep up with the
// groups that are read, so the next group is small.
func (t *turns) dropStale(e *endpoint, now time.Time) {
	if len(e.ready) > 0 && now.Sub(e.ready[0].readySince) > t.limits.readyAge {
		t.dropReady(e)
		e.fetch.size = minFetch
	}
}

// dropReady unloads the deliveries of which no attempt has started. The next read begins at the first pending delivery.
func (t *turns) dropReady(e *endpoint) {
	for _, d := range e.ready {
		t.unload(d)
	}
	e.ready = nil
	e.fetch.restart()
}
