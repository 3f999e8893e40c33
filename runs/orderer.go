package runs

import (
	"aiv/auth"
	"aiv/store"
)

// An Orderer is the account that orders a run, by one of its credentials, with what its plan allows. Runs are ordered
// by requests of clients, and by processes that act for an account.
type Orderer struct {
	AccountID    store.ID
	CredentialID store.ID // recorded with the run and its usage

	Plan              auth.Plan // only Code and Features are set
	JobsPerMonth      *int64    // the account's quota; nil: none
	MaxUnfinishedJobs *int64    // nil: DefaultMaxUnfinishedJobs
}

// OrdererOf returns the orderer of requests with a credential.
func OrdererOf(c *auth.Credential) Orderer {
	return Orderer{
		AccountID: c.AccountID, CredentialID: c.ID, Plan: c.Plan,
		JobsPerMonth: c.JobsPerMonth, MaxUnfinishedJobs: c.MaxUnfinishedJobs,
	}
}

// limit is what an account may order. quota is nil if the account has none.
type limit struct {
	quota         *int64 // jobs in a month
	maxUnfinished int64
}

// limit returns the limits that apply to the orderer's account.
func (o *Orderer) limit() limit {
	l := limit{o.JobsPerMonth, DefaultMaxUnfinishedJobs}
	if o.MaxUnfinishedJobs != nil {
		l.maxUnfinished = *o.MaxUnfinishedJobs
	}
	return l
}

// isMetered reports whether a run must be admitted under a lock on its account's row of account_months: always if the
// plan has a quota or a bound, otherwise only if the account's unfinished jobs, including this run, are estimated to
// exceed the default bound.
func (o *Orderer) isMetered(unfinished int64) bool {
	return o.JobsPerMonth != nil || o.MaxUnfinishedJobs != nil || unfinished > DefaultMaxUnfinishedJobs
}
