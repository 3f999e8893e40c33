// Package auth maps API keys to credentials, each with its account, plan and scopes, and lets an operator issue, rotate
// and revoke keys and the tokens of workers.
//
// It owns the tables plans, accounts, credentials, workers and identity_revision. The gateway checks the form of a key
// with HashKey; package limits reads credentials through a CredentialCache; package gateway/worker finds workers with a
// WorkerLookup; command aiv runs the operations of Admin.
package auth

import (
	"slices"
	"time"

	"aiv/store"
)

// A Credential is what a valid key identifies, as the database had it when the request was counted. It is never
// changed.
type Credential struct {
	ID        store.ID
	AccountID store.ID
	Name      string
	KeyPrefix string // the beginning of the key, which is not secret
	Scopes    []string
	RateLimit int        // requests per minute: the credential's own, else the plan's, else DefaultRateLimit
	Plan      Plan       // only Code and Features are set
	ExpiresAt *time.Time // nil: never

	JobsPerMonth      *int64 // the account's quota, else the plan's; nil: no quota
	MaxUnfinishedJobs *int64 // the plan's; nil: the service's default
}

// A Plan is a set of features and limits that accounts can have.
type Plan struct {
	Code      string
	Features  []string
	RateLimit *int // the default of its credentials; nil: DefaultRateLimit

	JobsPerMonth      *int64 // nil: no quota
	MaxUnfinishedJobs *int64 // nil: the service's default
}

// Scopes lists all scopes.
var Scopes = []string{"runs:read", "runs:write", "recommendations:read", "alerts:read", "webhooks:manage"}

// APIAccess is the feature that a plan must have for every route except GET /v1/me.
const APIAccess = "api_access"

// Bounds of a credential's rate limit, requests per minute.
const (
	DefaultRateLimit = 60
	MaxRateLimit     = 1_000_000
)

// HasScope reports whether the credential has any of the scopes.
func (c *Credential) HasScope(scopes ...string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(c.Scopes, s) })
}

// Entitled reports whether the plan has the feature.
func (p *Plan) Entitled(feature string) bool { return slices.Contains(p.Features, feature) }
