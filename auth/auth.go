// Package auth turns a bearer key into a credential with its account, plan and scopes, and lets an operator issue,
// rotate and revoke keys.
//
// It owns the tables plans, accounts and credentials. The gateway asks it what a key must look like (HashKey); package
// limits asks a CredentialCache whom a request is to be counted for; command aiv runs Admin's operations.
package auth

import (
	"slices"
	"sync/atomic"
	"time"

	"aiv/store"
)

// A Credential is what a valid key stands for, as the database had it when the request was counted.
type Credential struct {
	ID        store.ID
	AccountID store.ID
	Name      string
	KeyPrefix string
	Scopes    []string
	RateLimit int // requests per minute: the credential's own, else the plan's, else DefaultRateLimit
	Plan      Plan
	ExpiresAt *time.Time // nil: never

	JobsPerMonth      *int64 // the account's quota, else the plan's; nil: no quota
	MaxUnfinishedJobs *int64 // the plan's; nil: the service's default

	encoded *atomic.Pointer[[]byte] // nil in one that no CredentialCache made
}

// Encoded returns what encode makes of the credential, made once: a credential never changes, only another takes its
// place.
func (c *Credential) Encoded(encode func(*Credential) []byte) []byte {
	if c.encoded == nil {
		return encode(c)
	}
	if b := c.encoded.Load(); b != nil {
		return *b
	}
	b := encode(c)
	c.encoded.Store(&b)
	return b
}

// A Plan says what an account has bought.
type Plan struct {
	Code      string
	Features  []string
	RateLimit *int // the default of its credentials, if it has one

	JobsPerMonth      *int64 // nil: no quota
	MaxUnfinishedJobs *int64 // nil: the service's default
}

// Scopes are all that exist. webhooks:manage opens no route yet.
var Scopes = []string{"runs:read", "runs:write", "recommendations:read", "alerts:read", "webhooks:manage"}

// APIAccess is the entitlement that a plan must carry, whatever the scopes of a credential.
const APIAccess = "api_access"

// Bounds of a credential's rate limit, requests per minute.
const (
	DefaultRateLimit = 60
	MaxRateLimit     = 1_000_000
)

// HasScope tells whether the credential was granted any of the scopes.
func (c *Credential) HasScope(scopes ...string) bool {
	return slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(c.Scopes, s) })
}

// Entitled tells whether the plan carries the feature.
func (p *Plan) Entitled(feature string) bool { return slices.Contains(p.Features, feature) }
