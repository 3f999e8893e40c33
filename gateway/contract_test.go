package gateway_test

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/checks"
	"aiv/gateway"
)

// TestEveryRouteHasAGoldenCase checks that each route has a folder of golden files.
func TestEveryRouteHasAGoldenCase(t *testing.T) {
	for _, route := range gateway.Routes() {
		files, err := fs.Glob(goldenFS(), route.Golden+"/*.txt")
		must(t, err)
		if len(files) == 0 {
			t.Errorf("the route %s has no golden file in %s", route.Name, route.Golden)
		}
	}
}

// TestEveryCheckIsShown: each check has a golden file in which it rejects a run.
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

// TestSetupMakesTheKeys: setup.sh makes the keys that the golden files are tested with here.
func TestSetupMakesTheKeys(t *testing.T) {
	script, err := fs.ReadFile(goldenFS(), "setup.sh")
	must(t, err)
	got := []string{"rotated_new"}
	for _, m := range regexp.MustCompile(`(?m)^key (\w+) `).FindAllStringSubmatch(string(script), -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(newFixture(t).keys)), got); diff != "" {
		t.Errorf("keys (-fixture +setup.sh):\n%s", diff)
	}
}
