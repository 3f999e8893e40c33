package delivery

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// maxCommit bounds the number of outcomes that are written in one transaction.
const maxCommit = 512

// An outcome is what an attempt changes.
type outcome struct {
	delivery *delivery
	url      string // of the attempt
	status   string // of the delivery
	result   result
	delay    time.Duration // until the next attempt
	gone     bool          // the endpoint responded with 410
}

func newOutcome(d *delivery, url string, r result) outcome {
	o := outcome{delivery: d, url: url, result: r, status: "pending", gone: r.status == 410}
	delay, again := nextDelay(int(d.attempts)+1, r)
	switch {
	case r.err == "":
		o.status = "delivered"
	case o.gone || !again:
		o.status = "failed"
	default:
		o.delay = delay
	}
	return o
}

// writeOutcomes writes all outcomes so far in groups. Outcomes that arrive in the meantime form the groups of the next
// call. It keeps outcomes that it could not write, and outcomes of accounts on unreachable servers.
func (d *Dispatcher) writeOutcomes(ctx context.Context) error {
	for group := range slices.Chunk(d.writable(), maxCommit) {
		if err := d.write(ctx, group); err != nil {
			return err
		}
		written := make(map[*delivery]bool)
		d.mu.Lock()
		for _, o := range group {
			written[o.delivery] = true
			d.turns.unload(o.delivery)
			o.delivery.endpoint.written[o.delivery.event] = true
		}
		d.outcomes = slices.DeleteFunc(d.outcomes, func(o outcome) bool { return written[o.delivery] })
		d.mu.Unlock()
	}
	return nil
}

// writable returns the outcomes that can be written.
func (d *Dispatcher) writable() (all []outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.outcomes {
		if !d.cfg.Outage.Away(o.delivery.endpoint.account.id) {
			all = append(all, o)
		}
	}
	return all
}

// write writes outcomes and the endpoints' health in one transaction and one round trip.
func (d *Dispatcher) write(ctx context.Context, group []outcome) error {
	// Rows are locked in one order by all processes.
	slices.SortFunc(group, func(a, b outcome) int {
		x, y := a.delivery, b.delivery
		return cmp.Or(x.endpoint.account.id.Compare(y.endpoint.account.id), x.event.Compare(y.event), x.endpoint.id.Compare(y.endpoint.id))
	})
	n := len(group)
	accounts, events, endpoints := make([]store.ID, n), make([]store.ID, n), make([]store.ID, n)
	resends, attempts, codes := make([]int32, n), make([]int32, n), make([]int32, n)
	statuses, errs, delays := make([]string, n), make([]string, n), make([]float64, n)
	for i, o := range group {
		accounts[i], events[i], endpoints[i] = o.delivery.endpoint.account.id, o.delivery.event, o.delivery.endpoint.id
		resends[i], attempts[i], codes[i] = o.delivery.resends, o.delivery.attempts, int32(o.result.status)
		statuses[i], errs[i], delays[i] = o.status, o.result.err, o.delay.Seconds()
	}
	var batch pgx.Batch
	batch.Queue("BEGIN")       // without it, Citus commits each statement
	queueHealth(&batch, group) // endpoints are locked before deliveries, as by a resend
	batch.Queue(lockDeliveries, store.OnCitus(citusLockDeliveries), accounts, events, endpoints, resends, attempts)
	batch.Queue(writeOutcomes, store.OfAccounts("d", citusWriteOutcomes), accounts, events, endpoints, resends, attempts, statuses, codes, errs, delays)
	batch.Queue("COMMIT")
	return d.cfg.Pool.SendBatch(ctx, &batch).Close()
}

// queueHealth adds the statement that changes the health of endpoints. It changes only those that begin to fail, fail
// no longer, or are disabled. An endpoint with a success and failures in one group counts as succeeding, unless it
// responded with 410.
func queueHealth(batch *pgx.Batch, group []outcome) {
	type target struct {
		endpoint *endpoint
		url      string
	}
	type health struct{ succeeded, gone bool }
	changed := make(map[target]health)
	for _, o := range group {
		t := target{o.delivery.endpoint, o.url}
		h := changed[t]
		changed[t] = health{h.succeeded || o.result.err == "", h.gone || o.gone}
	}
	targets := slices.SortedFunc(maps.Keys(changed), func(a, b target) int {
		return cmp.Or(a.endpoint.account.id.Compare(b.endpoint.account.id), a.endpoint.id.Compare(b.endpoint.id))
	})
	n := len(targets)
	accounts, ids, urls := make([]store.ID, n), make([]store.ID, n), make([]string, n)
	succeeded, gone := make([]bool, n), make([]bool, n)
	for i, t := range targets {
		h := changed[t]
		accounts[i], ids[i], urls[i], succeeded[i], gone[i] = t.endpoint.account.id, t.endpoint.id, t.url, h.succeeded && !h.gone, h.gone
	}
	batch.Queue(writeHealth, store.OfAccounts("e", writeHealth), accounts, ids, urls, succeeded, gone, failingPeriod.Seconds())
}
