package checks_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/catalog"
	"aiv/checks"
	"aiv/runs"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// TestStandard: the contract fixes the order of four checks, between which others may stand. Every check has a unique
// name that can be part of a file name, and a sentence as its Doc.
func TestStandard(t *testing.T) {
	fixed := []string{"entitlement", "methodology", "model_support", "grounded_search"}
	var got []string
	names := make(map[string]bool)
	for _, c := range checks.Standard() {
		if slices.Contains(fixed, c.Name) {
			got = append(got, c.Name)
		}
		if !regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`).MatchString(c.Name) || names[c.Name] {
			t.Errorf("the name %q is not unique or not lower_case", c.Name)
		}
		if !strings.HasSuffix(c.Doc, ".") || c.Run == nil {
			t.Errorf("check %s: Doc must be a sentence and Run must be set", c.Name)
		}
		names[c.Name] = true
	}
	if diff := cmp.Diff(fixed, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRegistryRunsChecksInOrder(t *testing.T) {
	t.Parallel()
	registry := &checks.Registry{Catalog: catalog.New(storetest.New(t))} // a new database has AIVM-1.0, which covers grounded
	faults := []runs.Fault{{Code: "a", Detail: "first"}, {Code: "b", Detail: "second"}}
	var ran []string
	check := func(name string, err error, faults ...runs.Fault) checks.Check {
		return checks.Check{Name: name, Run: func(context.Context, *checks.Proposal) ([]runs.Fault, error) {
			ran = append(ran, name)
			return faults, err
		}}
	}
	pass := check("pass", nil)
	for _, test := range []struct {
		name      string
		checks    []checks.Check
		typ       string
		ran, want string
		refusal   *runs.Refusal
		err       string // its end
	}{
		{"all pass", []checks.Check{pass, pass}, "grounded", "pass pass", "AIVM-1.0", nil, "<nil>"},
		{"the first check with faults ends it", []checks.Check{pass, check("two", nil, faults...), check("three", nil, faults[1])},
			"grounded", "pass two", "", &runs.Refusal{Check: "two", Faults: faults}, ": first"},
		{"an error ends it", []checks.Check{check("one", errors.New("connection lost"), faults...), pass},
			"grounded", "one", "", nil, "check one: connection lost"},
		{"no methodology", []checks.Check{pass}, "plain", "pass", "", nil,
			"no check rejected a measurement type without a methodology"},
	} {
		ran, registry.Checks = nil, test.checks
		got, err := registry.Check(t.Context(), &runs.Proposal{CatalogRevision: 1, MeasurementType: test.typ})
		if got != test.want || !strings.HasSuffix(fmt.Sprint(err), test.err) {
			t.Errorf("%s: got %q, %v, want %q, %s", test.name, got, err, test.want, test.err)
		}
		if got := strings.Join(ran, " "); got != test.ran {
			t.Errorf("%s: ran %s, want %s", test.name, got, test.ran)
		}
		refusal, _ := errors.AsType[*runs.Refusal](err)
		if diff := cmp.Diff(test.refusal, refusal); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// TestRegistryWithoutDatabase: a catalog that cannot be read is an error, neither acceptance nor refusal.
func TestRegistryWithoutDatabase(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	pool.Close()
	registry := &checks.Registry{Checks: checks.Standard(), Catalog: catalog.New(pool)}
	_, err := registry.Check(t.Context(), propose(nil).Proposal)
	if _, refused := errors.AsType[*runs.Refusal](err); err == nil || refused || !strings.HasPrefix(err.Error(), "reading the catalog: ") {
		t.Errorf("got %v", err)
	}
}
