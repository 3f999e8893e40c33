package gateway

import (
	"net/http"

	"aiv/auth"
)

// identity is the answer of GET /v1/me.
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
	if err := x.params.only(); err != nil {
		return err
	}
	x.write(http.StatusOK, "application/json", x.credential().Encoded(encodeIdentity))
	return nil
}

func encodeIdentity(c *auth.Credential) []byte {
	return encode(identity{
		APIVersion: apiVersion,
		Credential: identityCredential{c.ID.Text("cred"), c.Name, c.KeyPrefix, c.Scopes, c.RateLimit},
		Plan:       identityPlan{c.Plan.Code, c.Plan.Features},
	})
}
