package gateway

import (
	"net/http"
	"sync"

	"aiv/auth"
	"aiv/gateway/wire"
)

// identity is the response of GET /v1/me.
type identity struct {
	APIVersion string             `json:"api_version"`
	Credential identityCredential `json:"credential"`
	Plan       identityPlan       `json:"plan"`
}

type identityCredential struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	KeyPrefix string   `json:"key_prefix"`
	Scopes    []string `json:"scopes"`
	RateLimit int      `json:"rate_limit_per_minute"`
}

type identityPlan struct {
	Code     string   `json:"code"`
	Features []string `json:"features"`
}

// apiVersion is the version of the interface.
const apiVersion = "API-1.0"

func (g *Gateway) me(x *exchange, _ *http.Request) error {
	if err := x.params.Only(); err != nil {
		return err
	}
	x.write(http.StatusOK, "application/json", g.identities.encode(x.credential()))
	return nil
}

// identities caches encoded identities. Encoding one takes a twentieth of the processor time of GET /v1/me (BenchmarkIdentity). A
// credential never changes, so an entry is never stale; when the cache is full, all entries are dropped.
type identities struct {
	mu      sync.RWMutex
	encoded map[*auth.Credential][]byte
}

const maxIdentities = 1000

func (s *identities) encode(c *auth.Credential) []byte {
	s.mu.RLock()
	b := s.encoded[c]
	s.mu.RUnlock()
	if b != nil {
		return b
	}
	b = encodeIdentity(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.encoded == nil || len(s.encoded) >= maxIdentities {
		s.encoded = make(map[*auth.Credential][]byte)
	}
	s.encoded[c] = b
	return b
}

func encodeIdentity(c *auth.Credential) []byte {
	return wire.Encode(identity{
		APIVersion: apiVersion,
		Credential: identityCredential{c.ID.Text("cred"), c.Name, c.KeyPrefix, c.Scopes, c.RateLimit},
		Plan:       identityPlan{c.Plan.Code, c.Plan.Features},
	})
}
