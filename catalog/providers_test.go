package catalog_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aiv/catalog"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestProvidersAreThoseOfModels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	list := func() []catalog.Provider {
		t.Helper()
		providers, err := catalog.Providers(t.Context(), f.pool)
		must(t, err)
		return providers
	}
	if got := list(); got == nil || len(got) != 0 {
		t.Errorf("an empty catalog: got %#v, want an empty list", got)
	}
	f.load(t, acme, `{"kind":"provider","code":"Best","name":"Best"}`, model("m"))
	c := catalog.New(f.pool)
	unmet := []catalog.Dependency{{Name: "configuration"}, {Name: "secret"}, {Name: "contract"}, {Name: "legal_approval"}}
	want := []catalog.Provider{
		{Code: "Best", Name: "Best", Dependencies: unmet}, {Code: "acme", Name: "Acme", Dependencies: slices.Clone(unmet)},
	}
	ignoreTime := cmpopts.IgnoreFields(catalog.Dependency{}, "ChangedAt")
	check := func(unmet ...string) {
		t.Helper()
		got := list()
		if diff := cmp.Diff(want, got, ignoreTime); diff != "" {
			t.Errorf("providers (-want +got):\n%s", diff)
		}
		for _, provider := range got {
			for _, d := range provider.Dependencies {
				if recorded := d.ChangedAt != nil; recorded != (d.Note != "") {
					t.Errorf("%s of %s changed at %v, with note %q", d.Name, provider.Code, d.ChangedAt, d.Note)
				}
			}
		}
		if diff := cmp.Diff(unmet, got[1].Unmet(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("unmet by the provider (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(unmet, f.now(t, c).Model("m").Unmet, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("unmet in its model (-want +got):\n%s", diff)
		}
	}
	check("configuration", "secret", "contract", "legal_approval")
	for _, step := range []struct {
		dependency, note string
		met              bool
		unmet            []string
	}{
		{"contract", "signed", true, []string{"configuration", "secret", "legal_approval"}},
		{"secret", "in the vault", true, []string{"configuration", "legal_approval"}},
		{"legal_approval", "by Ada", true, []string{"configuration"}},
		{"configuration", "tried", true, nil},
		{"contract", "ended", false, []string{"contract"}},
		{"contract", "still ended", false, []string{"contract"}},
	} {
		f.exec(t, `UPDATE provider_dependencies SET changed_at = '2026-01-01T00:00:00Z'`)
		before, start := f.revision(t), time.Now()
		must(t, f.admin.SetDependency(t.Context(), "acme", step.dependency, step.met, step.note))
		if f.revision(t) <= before {
			t.Errorf("%v: the revision did not increase", step)
		}
		for i := range want[1].Dependencies {
			if d := &want[1].Dependencies[i]; d.Name == step.dependency {
				d.Met, d.Note = step.met, step.note
				if changed := *list()[1].Dependencies[i].ChangedAt; changed.Before(start.Add(-time.Minute)) {
					t.Errorf("%v changed at %v", step, changed)
				}
			}
		}
		check(step.unmet...)
	}
	log := read[string](t, f, `SELECT concat_ws(' ', actor, action, subject, detail) FROM audit_log WHERE action <> 'catalog.import'
		ORDER BY id DESC LIMIT 1`)
	if want := `olga providers.unmet acme {"note": "still ended", "dependency": "contract"}`; log != want {
		t.Errorf("audit_log: got %s, want %s", log, want)
	}
}

func TestSetDependencyRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, acme)
	before := f.state(t)
	for _, test := range []struct{ provider, dependency, note, want string }{
		{"acme", "budget", "n", `unknown dependency "budget"; a provider depends on configuration, secret, contract, legal_approval`},
		{"acme", "", "n", `unknown dependency ""; a provider depends on configuration, secret, contract, legal_approval`},
		{"acme", "secret", " ", "a note is required: who checked the dependency, and how"},
		{"none", "secret", "n", `there is no provider "none"; see aiv providers list`},
	} {
		err := f.admin.SetDependency(t.Context(), test.provider, test.dependency, true, test.note)
		if got := fmt.Sprint(err); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	if after := f.state(t); after != before {
		t.Errorf("the row counts changed from %s to %s", before, after)
	}
}
