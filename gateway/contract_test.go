package gateway_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"aiv/checks"
	"aiv/gateway"
)

// TestEveryRouteHasAGoldenCase checks that each route has a folder of golden files.
func TestEveryRouteHasAGoldenCase(t *testing.T) {
	for name, folder := range gateway.RouteFolders() {
		files, err := fs.Glob(goldenFS(), folder+"/*.txt")
		must(t, err)
		if len(files) == 0 {
			t.Errorf("the route %s has no golden file in %s", name, folder)
		}
	}
}

// TestEveryCheckIsShown: a check is shown refusing before it may refuse.
func TestEveryCheckIsShown(t *testing.T) {
	var names []string
	for _, c := range checks.Standard() {
		if slices.Contains(names, c.Name) {
			t.Errorf("two checks are called %s", c.Name)
		}
		names = append(names, c.Name)
		file := "runs.create/rejected_" + c.Name + ".txt"
		text, err := fs.ReadFile(goldenFS(), file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(text), `"check":"`+c.Name+`"`) {
			t.Errorf("%s shows no refusal by %s", file, c.Name)
		}
	}
}
