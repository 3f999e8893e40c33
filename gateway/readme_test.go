package gateway_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/gateway"
)

// TestReadmeRoutes checks that the program has each route in the table of README.md, with these scopes. openapi.json,
// not the README, lists all routes.
func TestReadmeRoutes(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	_, table, _ := strings.Cut(string(readme), "\n| route | scope |\n|---|---|\n")
	table, _, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("README.md has no table of routes and scopes")
	}
	routes := gateway.Routes()
	code := regexp.MustCompile("`([^`]+)`")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		scopes := []string{}
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			scopes = append(scopes, m[1])
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			i := slices.IndexFunc(routes, func(r gateway.Route) bool { return r.Name == m[1] })
			if i < 0 || !slices.Equal(routes[i].Scopes, scopes) {
				t.Errorf("README.md lists %s with the scopes %q, unlike the program", m[1], scopes)
			}
		}
	}
}
