package worker

import (
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/runs/jobs"
)

// heartbeat renews leases, and tells the worker which of its jobs it no longer holds.
func (h *Handler) heartbeat(x *exchange) error {
	v, err := h.readJSON(x)
	if err != nil {
		return err
	}
	var f problem.Faults
	o := request.NewObject(&v, request.At("#"), &f, "lease_seconds", "jobs")
	lease := seconds(o.Integer("lease_seconds", minLease, maxLease))
	var named []namedJob
	var renewals []jobs.Renewal
	// Indexes of jobs by id, because a job must not be named twice.
	seen := make(map[string]int)
	items, list := o.Array("jobs", "jobs", 1, maxJobs), o.At.Member("jobs")
	for i := range items {
		job := request.NewObject(&items[i], list.Item(i), &f, "id", "attempt")
		n := readJob(job, i, seen)
		// An id that is not valid gets the zero Key, and is kept for the response.
		named = append(named, n)
		renewals = append(renewals, jobs.Renewal{Key: n.key(), Attempt: int(n.attempt)})
	}
	if len(f) > 0 {
		return invalidRequest("The body is not a valid heartbeat.", f)
	}
	// named and renewals have copies, so the body is no longer needed.
	h.memory.keep(x, 0)
	ctx, cancel := h.deadline(x)
	defer cancel()
	states, err := h.cfg.Jobs.Renew(ctx, x.reporter(), lease, renewals)
	if err != nil {
		return err
	}
	h.respond(x, appendStates(named, states, true))
	return nil
}
