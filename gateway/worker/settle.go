package worker

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/wire"
	"aiv/runs/jobs"
	"aiv/store/strictjson"
)

// Bounds of a settlement. maxMessage is in characters.
const (
	maxMessage      = 2048
	maxAfterSeconds = 3600
)

var (
	// errorCode matches codes, which workers choose. reason matches why a provider is unavailable.
	errorCode = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	reason    = regexp.MustCompile(`^(?:secret|contract|configuration)$`)
)

// settle records how attempts ended. It needs the database's time to read the body, because answered_at is compared
// with it.
func (h *Handler) settle(x *exchange) error {
	v, err := h.readJSON(x)
	if err != nil {
		return err
	}
	ctx, cancel := h.deadline(x)
	defer cancel()
	now, err := h.cfg.Jobs.Now(ctx)
	if err != nil {
		return err
	}
	named, settlements, f := readSettlements(v, now)
	if len(f) > 0 { // perhaps only because a clock has stepped
		if now, err = h.cfg.Jobs.ReadNow(ctx); err != nil {
			return err
		}
		named, settlements, f = readSettlements(v, now)
	}
	if len(f) > 0 {
		return invalidRequest("The body is not a valid settlement.", f)
	}
	// The values are garbage now. The texts of answers are substrings of the body; those that had escapes are decoded
	// copies.
	kept := x.bodySize
	for i := range settlements {
		if a := settlements[i].Answer; a != nil {
			kept += a.Size()
		}
	}
	h.memory.keep(x, kept)
	states, err := h.cfg.Jobs.Settle(ctx, x.reporter(), settlements)
	if err != nil {
		return err
	}
	h.respond(x, appendStates(named, states, false))
	return nil
}

func (x *exchange) reporter() jobs.Reporter {
	return jobs.Reporter{Worker: x.worker.ID, Providers: x.worker.Providers}
}

// readSettlements reads the body of a settlement. now is the database's time.
func readSettlements(v strictjson.Value, now time.Time) (named []namedJob, settlements []jobs.Settlement, f problem.Faults) {
	o := request.NewObject(&v, request.At("#"), &f, "jobs")
	items, list := o.Array("jobs", "jobs", 1, maxJobs), o.At.Member("jobs")
	named, settlements = make([]namedJob, 0, len(items)), make([]jobs.Settlement, 0, len(items))
	seen := make(map[string]int, len(items))
	for i := range items {
		job, s := readOutcome(&items[i], list.Item(i), now, &f)
		n := readJob(job, i, seen)
		s.Key, s.Attempt = n.key(), int(n.attempt)
		named, settlements = append(named, n), append(settlements, s)
	}
	return named, settlements, f
}

// A namedJob is a job as a request identifies it. Its id is a copy: texts of the parser keep the whole body in memory.
type namedJob struct {
	id      string
	attempt int64
}

// readJob reads a job's id and attempt. seen has the index of each id read before.
func readJob(o request.Object, i int, seen map[string]int) namedJob {
	if o.Kind != strictjson.KindObject {
		return namedJob{}
	}
	n := namedJob{strings.Clone(o.Text("id")), o.Integer("attempt", 1, 1<<31-1)}
	if v := o.Member("id"); v != nil && v.Kind == strictjson.KindString {
		if first, ok := seen[n.id]; ok {
			o.Fault("id", fmt.Sprintf("duplicates jobs/%d/id", first))
		} else {
			seen[n.id] = i
		}
	}
	return n
}

// key returns the job's key, or the zero Key for an id of no job.
func (n namedJob) key() jobs.Key {
	k, err := jobs.ParseID(n.id)
	if err != nil {
		return jobs.Key{}
	}
	return k
}

// readOutcome reads how an attempt ended: the members of a job depend on its outcome.
func readOutcome(item *strictjson.Value, at *request.Location, now time.Time, f *problem.Faults) (o request.Object, s jobs.Settlement) {
	// The outcome is read first, because it decides which other members are required.
	outcome := item.Member("outcome")
	s.Outcome = outcomeOf(outcome)
	switch s.Outcome {
	case jobs.Completed:
		o = request.NewObject(item, at, f, "id", "attempt", "outcome", "answer")
		if v := o.Member("answer"); v != nil {
			s.Answer = readAnswer(v, at.Member("answer"), now, f)
		}
	case jobs.Failed:
		o = request.NewObject(item, at, f, "id", "attempt", "outcome", "error")
		s.ErrorCode, s.ErrorMessage = readError(o, f)
	case jobs.Retry:
		o = request.NewObject(item, at, f, "id", "attempt", "outcome", "error", "after_seconds")
		s.ErrorCode, s.ErrorMessage = readError(o, f)
		s.After = readAfter(o)
	case jobs.Throttled:
		o = request.NewObject(item, at, f, "id", "attempt", "outcome", "after_seconds")
		s.After = readAfter(o)
	case jobs.Released:
		o = request.NewObject(item, at, f, "id", "attempt", "outcome")
	case jobs.Unavailable:
		o = request.NewObject(item, at, f, "id", "attempt", "outcome", "reason", "message")
		// jobs.Settlement has the reason and the message in the fields of an error.
		s.ErrorCode = strings.Clone(o.Matching("reason", reason, "secret, contract or configuration"))
		s.ErrorMessage = strings.Clone(o.TextUpTo("message", maxMessage))
		if v := o.Member("message"); v != nil && v.Kind == strictjson.KindString && strings.TrimSpace(v.Text) == "" {
			o.Fault("message", "must not be blank")
		}
	default:
		// Without a known outcome it is not known which other members are required.
		o = request.NewOpenObject(item, at, f, []string{"id", "attempt", "outcome"}, []string{"answer", "error", "after_seconds", "reason", "message"})
		if outcome != nil && outcome.Kind == strictjson.KindString {
			o.Fault("outcome", "must be completed, failed, retry, throttled, released or unavailable")
		} else {
			o.Text("outcome")
		}
	}
	return o, s
}

// outcomeOf returns the outcome that a value names, or "". It returns a constant, because a substring would keep the
// whole body in memory.
func outcomeOf(v *strictjson.Value) jobs.Outcome {
	if v == nil || v.Kind != strictjson.KindString {
		return ""
	}
	for _, o := range [...]jobs.Outcome{jobs.Completed, jobs.Failed, jobs.Retry, jobs.Throttled, jobs.Released, jobs.Unavailable} {
		if v.Text == string(o) {
			return o
		}
	}
	return ""
}

// readError reads the member error. It returns copies, because a substring would keep the whole body in memory.
func readError(job request.Object, f *problem.Faults) (code, message string) {
	v := job.Member("error")
	if v == nil {
		return "", ""
	}
	o := request.NewObject(v, job.At.Member("error"), f, "code", "message")
	if v.Kind != strictjson.KindObject {
		return "", ""
	}
	code = o.Matching("code", errorCode, "1 to 64 of a-z, 0-9 and _, beginning with a letter")
	return strings.Clone(code), strings.Clone(o.TextUpTo("message", maxMessage))
}

// readAfter reads after_seconds. It returns 0 for null.
func readAfter(o request.Object) time.Duration {
	n := readIntegerOrNull(o, "after_seconds", 1, maxAfterSeconds)
	if n == nil {
		return 0
	}
	return seconds(*n)
}

// appendStates returns the response of a heartbeat or a settlement. A heartbeat also gets the end of each lease, or
// null for a job that the worker does not hold.
func appendStates(named []namedJob, states []jobs.Reply, leases bool) []byte {
	b := make([]byte, 0, 32+150*len(named))
	b = append(b, `{"jobs":[`...)
	for i, n := range named {
		b = append(wire.Item(b), '{')
		b = wire.Text(b, "id", n.id)
		b = wire.Int(b, "attempt", int(n.attempt))
		b = wire.Text(b, "state", states[i].State)
		// Settlements have no lease_until.
		if leases {
			var until *time.Time
			if states[i].State == jobs.Held {
				until = &states[i].Until
			}
			b = wire.TimeOrNull(b, "lease_until", until)
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}
