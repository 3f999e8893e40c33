package gateway_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
)

// TestReadmeRoutes checks that the program has each route in the table of README.md, with these scopes. openapi.json,
// not the README, lists all routes.
func TestReadmeRoutes(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "\n| route | scope |\n|---|---|\n")
	table, _, found := strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("README.md has no table of routes and scopes")
	}
	code := regexp.MustCompile("`([^`]+)`")
	got := make(map[string][]string)
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			t.Fatalf("README.md: %q has %d cells, want 2", row, len(cells)-2)
		}
		scopes := []string{}
		for _, m := range code.FindAllStringSubmatch(cells[2], -1) {
			scopes = append(scopes, m[1])
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			if _, twice := got[m[1]]; twice {
				t.Errorf("README.md lists %s twice", m[1])
			}
			got[m[1]] = scopes
		}
	}
	want := make(map[string][]string)
	for _, r := range gateway.Routes() {
		if _, listed := got[r.Name]; listed {
			want[r.Name] = r.Scopes
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes and scopes (-program +README.md):\n%s", diff)
	}
}
