package gateway_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/checks"
)

// TestEveryCheckIsShown: each check has a golden file in which it rejects a run.
func TestEveryCheckIsShown(t *testing.T) {
	for _, c := range checks.Standard() {
		file := "runs.create/rejected_" + c.Name + ".txt"
		if !strings.Contains(readGolden(t, file), `"check":"`+c.Name+`"`) {
			t.Errorf("%s shows no refusal by %s", file, c.Name)
		}
	}
}

// TestSetupMakesTheKeys: setup.sh makes the keys that the golden files are tested with here.
func TestSetupMakesTheKeys(t *testing.T) {
	got := []string{"rotated_new"}
	for _, m := range regexp.MustCompile(`(?m)^key (\w+) `).FindAllStringSubmatch(readGolden(t, "setup.sh"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(newFixture(t).keys)), got); diff != "" {
		t.Errorf("keys (-fixture +setup.sh):\n%s", diff)
	}
}
