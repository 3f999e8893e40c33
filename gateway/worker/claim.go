package worker

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/catalog"
	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/gateway/wire"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/strictjson"
)

// Bounds of requests. Leases and waits are in seconds.
const (
	maxJobs      = 500 // of a claim, a heartbeat or a settlement
	minLease     = 10
	maxLease     = 900
	maxProviders = 500
	maxWait      = 30
)

// claim hands out jobs. It may wait for the first one for as long as the request says.
func (h *Handler) claim(x *exchange) error {
	v, err := h.readJSON(x)
	if err != nil {
		return err
	}
	r, faults := readClaim(v, x.worker.Providers)
	if len(faults) > 0 {
		return invalidRequest("The body is not a valid claim.", faults)
	}
	// r has copies, so the body is no longer needed. Its memory is released, because a claim may wait for long.
	h.memory.keep(x, 0)
	r.Worker = x.worker.ID
	// A claim ends when its client disconnects, because jobs handed out to it later would be unavailable until their
	// leases end.
	ctx, cancel := context.WithTimeout(store.CountRoundTrips(x.request.Context(), &x.roundTrips), r.Wait+h.cfg.Timeout)
	defer cancel()
	claimed, err := h.cfg.Jobs.Claim(ctx, r)
	// The client has disconnected. ServeHTTP logs the request, and net/http closes the connection.
	if x.request.Context().Err() != nil {
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		return err
	}
	// The capacity is an estimate for questions of usual length.
	h.respond(x, appendJobs(make([]byte, 0, 64+700*len(claimed)), claimed))
	return nil
}

// readClaim reads the body of a claim by a worker whose token allows the given providers; nil: all.
func readClaim(v strictjson.Value, allowed []string) (*jobs.ClaimRequest, problem.Faults) {
	var f problem.Faults
	o := request.NewObject(&v, request.At("#"), &f, "limit", "lease_seconds", "providers", "wait_seconds")
	if v.Kind != strictjson.KindObject {
		return nil, f
	}
	return &jobs.ClaimRequest{
		Limit:     int(o.Integer("limit", 1, maxJobs)),
		Lease:     seconds(o.Integer("lease_seconds", minLease, maxLease)),
		Providers: readProviders(o, allowed),
		Wait:      seconds(o.Integer("wait_seconds", 0, maxWait)),
	}, f
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// readProviders returns the allowed providers that a claim lists, or all allowed ones if providers is null.
func readProviders(o request.Object, allowed []string) []string {
	v := o.Member("providers")
	switch {
	case v == nil || v.Kind == strictjson.KindNull:
		return allowed
	case v.Kind != strictjson.KindArray:
		o.Fault("providers", "must be null or an array of provider codes, not "+v.Describe())
		return nil
	}
	// Providers that do not exist or that the token does not allow are left out without a fault, so that workers with
	// different tokens can send the same list. If none is left, the list is empty but not nil, and matches no job.
	providers := []string{}
	for i, item := range o.Array("providers", "provider codes", 0, maxProviders) {
		if item.Kind != strictjson.KindString {
			o.Fault("providers/"+strconv.Itoa(i), "must be a string, not "+item.Describe())
		} else if catalog.ProviderPattern().MatchString(item.Text) && (allowed == nil || slices.Contains(allowed, item.Text)) {
			providers = append(providers, strings.Clone(item.Text)) // a substring would keep the whole body in memory
		}
	}
	return providers
}

func invalidRequest(detail string, f problem.Faults) error {
	return &problem.Problem{Code: problem.InvalidRequest, Detail: detail, Errors: f}
}

// appendJobs appends the response of a claim.
func appendJobs(b []byte, claimed []jobs.Job) []byte {
	b = append(b, `{"jobs":[`...)
	for i := range claimed {
		j := &claimed[i]
		b = append(wire.Item(b), '{')
		b = append(wire.Member(b, "id"), '"')
		b = append(j.Key.AppendID(b), '"')
		b = wire.Int(b, "attempt", j.Attempt)
		b = wire.Time(b, "lease_until", j.LeaseUntil)
		b = wire.ID(b, "account_id", "acct", j.Key.Account)
		b = wire.ID(b, "run_id", "run", j.Key.Run)
		// A job contains all that a worker needs to ask the question.
		p, q := j.Parameters, j.Question
		b = wire.Text(b, "measurement_type", p.MeasurementType)
		b = wire.Text(b, "methodology_version", p.MethodologyVersion)
		b = append(wire.Member(b, "model"), '{')
		b = wire.Text(b, "id", p.ModelID)
		b = wire.Text(b, "provider", j.Provider)
		b = wire.Text(b, "provider_model", p.ProviderModel)
		b = append(b, '}')
		b = append(wire.Member(b, "question"), '{')
		b = wire.Text(b, "id", q.ID)
		b = wire.Text(b, "text", q.Text)
		b = wire.Text(b, "language", q.Language)
		b = wire.Text(b, "country", q.Country)
		b = append(b, '}')
		b = wire.Int(b, "repetition", j.Repetition)
		b = wire.Text(b, "locale", p.Locale)
		b = wire.Text(b, "country", p.Country)
		b = wire.Text(b, "language", p.Language)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}
