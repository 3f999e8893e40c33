package gateway

import "strings"

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
