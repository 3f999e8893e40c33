package telemetry

import (
	"bytes"
	"log/slog"

	"aiv/auth"
)

// LogLine returns a function that logs one and the same request, by the log of requests or by slog.
func LogLine(own *RequestLog, other *slog.Logger, credential *auth.Credential) func(byOwn bool) {
	r := Request{ID: "req_01m7xrd2hnfc7awpmyb9yh7w5x", Method: "GET", Route: "GET /v1/me", Status: 200,
		Took: 1234567, RoundTrips: 1, Remote: "127.0.0.1:50000", Credential: credential}
	return func(byOwn bool) {
		if byOwn {
			own.write(&r)
		} else {
			r.log(other)
		}
	}
}

// LogLineFor returns the line of a request with text in each of its texts but the method.
func LogLineFor(text string) []byte {
	return (&Request{ID: "req_1", Route: "none", Method: "GET", Code: text, Remote: text}).append(nil)
}

// LogLinesOf returns the lines of a request with a method, by the log of requests and by slog.
func LogLinesOf(method string) (own, other []byte) {
	r := Request{ID: "req_1", Route: "none", Method: method}
	var b bytes.Buffer
	r.log(slog.New(slog.NewJSONHandler(&b, nil)))
	return r.append(nil), b.Bytes()
}
