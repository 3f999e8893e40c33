package gateway

import (
	"log/slog"
	"strings"

	"aiv/auth"
)

// RouteFolders maps each route to the folder of its golden files: GET /v1/catalog/models to catalog.models, POST /v1/runs
// to runs.create.
func RouteFolders() map[string]string {
	folders := make(map[string]string)
	for i := range routes {
		r := &routes[i]
		folder := strings.ReplaceAll(strings.TrimPrefix(r.path, "/v1/"), "/", ".")
		switch {
		case r.method == "POST":
			folder += ".create"
		case strings.HasSuffix(folder, "{id}"):
			folder = strings.TrimSuffix(folder, "{id}") + "read"
		case folder == "runs":
			folder += ".list"
		}
		folders[r.name()] = folder
	}
	return folders
}

// LogLine returns a function that logs one and the same request, by the log of requests or by slog.
func LogLine(own *RequestLog, other *slog.Logger, credential *auth.Credential) func(byOwn bool) {
	a := answered{requestID: "req_01m7xrd2hnfc7awpmyb9yh7w5x", method: "GET", route: "GET /v1/me", status: 200,
		took: 1234567, trips: 1, remote: "127.0.0.1:50000", credential: credential}
	return func(byOwn bool) {
		if byOwn {
			own.line(&a)
		} else {
			a.log(other)
		}
	}
}
