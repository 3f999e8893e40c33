// Package capability lists what each package owns: tables, invariants, scopes, types of events and prefixes of ids.
// Commands pass the list to what works with all tables: privileges, the distribution over a cluster, erasures, purges
// and aiv verify. So do the tests of other packages that work with all tables: the package is not internal for them.
//
// A new table is a migration and a line in the Capability of its package; a new package with tables is also a line
// here.
package capability

import (
	"aiv/auth"
	"aiv/catalog"
	"aiv/cmd/aiv/internal/counting"
	"aiv/idempotency"
	"aiv/insights"
	"aiv/insights/brands"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/limits"
	"aiv/runs"
	"aiv/runs/jobs"
	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/schema"
)

// All lists the capabilities from the lowest layer up. aiv verify reads the invariants in this order, and purges and
// erasures go through the tables in it: their functions take the locks of one package after the locks of the packages
// below.
var All = []schema.Capability{
	schema.Base,
	auth.Capability,
	limits.Capability,
	idempotency.Capability,
	catalog.Capability,
	runs.Capability,
	jobs.Capability,
	events.Capability,
	brands.Capability,
	visibility.Capability,
	insights.Capability,
	schedules.Capability,
	webhooks.Capability,
}

// Invariants returns the invariants of all packages, and that the scopes and the types of events in the database are
// known.
func Invariants() (all []store.Invariant) {
	var scopes, types []string
	for _, c := range All {
		all = append(all, c.Invariants...)
		scopes = append(scopes, c.Scopes...)
		for _, e := range c.Events {
			types = append(types, e.Name)
		}
	}
	all = append(all, counting.Invariants()...)
	return append(all, auth.KnownScopes(scopes), events.KnownTypes(types), webhooks.KnownTypes(types))
}
