package gateway

import (
	"cmp"
	"os"
	"regexp"
	"strings"
	"testing"

	"aiv/insights/events"
)

// TestEveryEventTypeHasAScope: events of a type that the gateway does not know would be hidden, and a subscription to
// all types be refused.
func TestEveryEventTypeHasAScope(t *testing.T) {
	for _, name := range events.Types() {
		if _, known := readScope(name); !known {
			t.Errorf("eventTypes lacks %s; add the capability of the package that causes it", name)
		}
	}
}

// TestReadmeRoutes checks that the program has each route in the table of README.md, with these scopes. openapi.json,
// not the README, lists all routes.
func TestReadmeRoutes(t *testing.T) {
	scopes := make(map[string]string)
	for i := range routes {
		scopes[routes[i].name()] = cmp.Or(strings.Join(routes[i].scopes, "` or `"), "none")
	}
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	rows := regexp.MustCompile("(?m)^\\| (`[A-Z]+ /v1/.*) \\| `?(.*?)`? \\|$").FindAllStringSubmatch(string(readme), -1)
	if rows == nil {
		t.Fatal("README.md has no table of routes and scopes")
	}
	for _, row := range rows {
		for name := range strings.SplitSeq(strings.Trim(row[1], "`"), "`, `") {
			if scopes[name] != row[2] {
				t.Errorf("README.md lists %s with the scopes %s, and the program has %s", name, row[2], scopes[name])
			}
		}
	}
}
