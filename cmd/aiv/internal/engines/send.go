package engines

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"time"
)

const (
	maxBody    = 16 << 20  // of a response, decompressed
	maxHeaders = 256 << 10 // of a response
	userAgent  = "aiv-work/1"
)

// newTransport keeps as many connections as there are jobs at a time. HTTPS_PROXY, HTTP_PROXY and NO_PROXY apply,
// except to loopback hosts. An HTTP/2 connection that the network has dropped without a sign is closed when it does not
// answer a ping: the requests of all jobs share it, and each would otherwise wait until its job's time is over.
func newTransport(parallel int) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    parallel,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    30 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// newRequest returns the request of a prompt, and its body.
func (x *Executor) newRequest(ctx context.Context, p *prompt, key string) (*http.Request, []byte, error) {
	body, err := encode(x.engine.body(p))
	if err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.base+x.engine.path(p.model), bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.GetBody = nil // over HTTP/2 the transport would repeat a request that a server refuses, again and again
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", userAgent)
	if key != "" {
		r.Header.Set(x.engine.keyHeader, x.engine.keyPrefix+key)
	}
	if name := x.engine.header[0]; name != "" {
		r.Header.Set(name, x.engine.header[1])
	}
	return r, body, nil
}

// An exchange is a response with its body. Its body is nil if it was too long or corrupt, or ended early where the
// status says enough.
type exchange struct {
	status  int
	header  http.Header
	body    []byte
	tooLong bool
}

// send sends one request. It uses the transport and not a client, so that no redirect is followed and no cookie is
// kept. An error means that there is no complete response.
func (x *Executor) send(ctx context.Context, p *prompt, key string) (*exchange, error) {
	request, _, err := x.newRequest(ctx, p, key)
	if err != nil {
		return nil, err
	}
	r, err := x.transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	e := &exchange{status: r.StatusCode, header: r.Header}
	if e.status == http.StatusSwitchingProtocols {
		return e, nil // its body is a connection
	}
	// One byte more than the bound shows that a body is too long.
	e.body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if corrupt(err) || err != nil && saysAll(e.status) {
		e.body, err = nil, nil // is not JSON
	}
	if len(e.body) > maxBody {
		e.body, e.tooLong = nil, true
	}
	return e, err
}

// saysAll reports whether a status has an outcome that needs no body, even one that ends early: a limited API, for
// example, gets no second request.
func saysAll(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusRequestTimeout, http.StatusTooManyRequests, 498,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return true
	}
	return status != http.StatusOK && status < 400
}

// corrupt reports whether a body is no valid compressed data.
func corrupt(err error) bool {
	_, invalid := errors.AsType[flate.CorruptInputError](err)
	return invalid || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum)
}

// withoutResponse returns the text of an error without parts of the response. Package net/http quotes the line of a
// header that it cannot read, or does not even quote it.
func withoutResponse(err error) string {
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return "a header of the response is not valid"
	}
	return quoted.ReplaceAllLiteralString(err.Error(), "…")
}

// quoted matches what strconv.Quote returns.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// requestID returns how the API identifies the request, for its support.
func (e *exchange) requestID() string {
	if id := e.header.Get("X-Request-Id"); id != "" {
		return id
	}
	return e.header.Get("Request-Id")
}

// origin returns the scheme, the host and the port of an address.
func origin(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}
