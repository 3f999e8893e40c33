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
)

// TestStandard: the contract fixes the order of four checks, between which others may stand.
func TestStandard(t *testing.T) {
	fixed := []string{"entitlement", "methodology", "model_support", "grounded_search"}
	var got []string
	for _, c := range checks.Standard() {
		if slices.Contains(fixed, c.Name) {
			got = append(got, c.Name)
		}
	}
	storetest.Equal(t, fixed, got)
}

func TestRegistryRunsChecksInOrder(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	registry := &checks.Registry{Catalog: catalog.New(pool)} // a new database has AIVM-1.0, which covers grounded
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
		storetest.Equal(t, test.refusal, refusal, test.name)
	}
	// A catalog that cannot be read is an error, neither acceptance nor refusal.
	pool.Close()
	registry = &checks.Registry{Checks: checks.Standard(), Catalog: catalog.New(pool)}
	_, err := registry.Check(t.Context(), propose(nil).Proposal)
	if _, refused := errors.AsType[*runs.Refusal](err); err == nil || refused {
		t.Errorf("without a catalog: %v", err)
	}
}
