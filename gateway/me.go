package gateway

import (
	"net/http"

	"aiv/auth"
	"aiv/gateway/wire"
)

// apiVersion is the version of the interface.
const apiVersion = "API-1.0"

// me responds with the credential of the request. It does not use the database, because the admission has the
// credential. Any valid key may use it.
func (g *Gateway) me(x *exchange, _ *http.Request) error {
	x.write(http.StatusOK, "application/json", appendIdentity(make([]byte, 0, 512), x.credential()))
	return nil
}

// appendIdentity appends the response of GET /v1/me. TestOpenAPIAndGoldenFiles validates it by its schema.
func appendIdentity(b []byte, c *auth.Credential) []byte {
	b = append(b, '{')
	b = wire.Text(b, "api_version", apiVersion)
	b = append(wire.Member(b, "credential"), '{')
	b = wire.ID(b, "id", "cred", c.ID)
	b = wire.Text(b, "name", c.Name)
	b = wire.Text(b, "key_prefix", c.KeyPrefix)
	b = wire.Texts(b, "scopes", c.Scopes)
	b = wire.Int(b, "rate_limit_per_minute", c.RateLimit)
	b = append(b, '}')
	b = append(wire.Member(b, "plan"), '{')
	b = wire.Text(b, "code", c.Plan.Code)
	b = wire.Texts(b, "features", c.Plan.Features)
	return append(b, "}}"...)
}
