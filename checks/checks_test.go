package checks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aiv/catalog"
	"aiv/checks"
	"aiv/runs"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// TestOrderOfStandard: clients rely on the order of these; others may stand anywhere among them.
func TestOrderOfStandard(t *testing.T) {
	want := []string{"entitlement", "methodology", "model_support", "grounded_search"}
	var got []string
	for _, c := range checks.Standard() {
		if slices.Contains(want, c.Name()) {
			got = append(got, c.Name())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// check answers as it is told, and tells that it was asked.
type check struct {
	name        string
	faults      []runs.Fault
	err         error
	methodology *catalog.Methodology
	asked       *[]string
}

func (c check) Name() string { return c.name }

func (c check) Check(_ context.Context, p *checks.Proposal) ([]runs.Fault, error) {
	*c.asked = append(*c.asked, c.name)
	if c.methodology != nil {
		p.Methodology = c.methodology
	}
	return c.faults, c.err
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	shelf := catalog.New(storetest.New(t))
	v1, v2 := &catalog.Methodology{Version: "AIVM-1.0"}, &catalog.Methodology{Version: "AIVM-2.0"}
	faults := []runs.Fault{{Code: "a", Detail: "first"}, {Code: "b", Detail: "second"}}
	away := errors.New("away")
	for _, test := range []struct {
		name    string
		checks  []check
		asked   string
		want    string
		refusal *runs.Refusal
		err     string
	}{
		{"all admit", []check{{name: "one"}, {name: "two", methodology: v1}, {name: "three"}}, "one two three", "AIVM-1.0", nil, "<nil>"},
		{"the last word counts", []check{{name: "one", methodology: v1}, {name: "two", methodology: v2}}, "one two", "AIVM-2.0", nil, "<nil>"},
		{"the first that refuses ends it, with all its faults",
			[]check{{name: "one", methodology: v1}, {name: "two", faults: faults}, {name: "three", faults: faults[1:]}}, "one two", "",
			&runs.Refusal{Check: "two", Faults: faults}, "refused by two: first"},
		{"who can't tell ends it", []check{{name: "one", faults: faults, err: away}, {name: "two"}}, "one", "", nil, "check one: away"},
		{"nobody has chosen a methodology", []check{{name: "one"}}, "one", "", nil, "no check has chosen a methodology"},
		{"no checks admit nothing", nil, "", "", nil, "no check has chosen a methodology"},
	} {
		var asked []string
		registry := &checks.Registry{Catalog: shelf}
		for _, c := range test.checks {
			c.asked = &asked
			registry.Checks = append(registry.Checks, c)
		}
		got, err := registry.Admit(t.Context(), &runs.Proposal{CatalogRevision: 1})
		if got != test.want || fmt.Sprint(err) != test.err {
			t.Errorf("%s: got %q, %v, want %q, %s", test.name, got, err, test.want, test.err)
		}
		if got := strings.Join(asked, " "); got != test.asked {
			t.Errorf("%s: asked %s, want %s", test.name, got, test.asked)
		}
		refusal, _ := errors.AsType[*runs.Refusal](err)
		if diff := cmp.Diff(test.refusal, refusal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestRegistryWithoutItsCatalog: a catalog that can't be read is no reason to admit, nor to refuse.
func TestRegistryWithoutItsCatalog(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	pool.Close()
	registry := &checks.Registry{Checks: checks.Standard(), Catalog: catalog.New(pool)}
	_, err := registry.Admit(t.Context(), propose(nil).Proposal)
	if _, refused := errors.AsType[*runs.Refusal](err); err == nil || refused || !strings.HasPrefix(err.Error(), "reading the catalog: ") {
		t.Errorf("got %v", err)
	}
}
