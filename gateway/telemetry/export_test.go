package telemetry

import (
	"bytes"
	"log/slog"

	"aiv/auth"
)

func exampleOf(credential *auth.Credential) *Request {
	return &Request{ID: "req_01m7xrd2hnfc7awpmyb9yh7w5x", Method: "GET", Route: "GET /v1/me", Status: 200,
		Took: 1234567, RoundTrips: 1, Remote: "127.0.0.1:50000", Credential: credential}
}

// LogLine logs one and the same request.
func LogLine(own *RequestLog, log *slog.Logger, credential *auth.Credential) {
	exampleOf(credential).LogTo(own, log)
}

// LogLineByOwn returns a function that encodes the line of LogLine as the log of requests does.
func LogLineByOwn(credential *auth.Credential) func() {
	r := exampleOf(credential)
	var line []byte
	return func() { line = r.append(line[:0]) }
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
