// Package capability lists what each package owns: tables, invariants, scopes, types of events and prefixes of ids.
// Commands pass the list to what works with all tables: privileges, the distribution over a cluster, erasures, purges
// and aiv verify. So do the tests of other packages that work with all tables: the package is not internal for them.
//
// A new table is a migration and a line in the Capability of its package; a new package with tables is also a line
// here.
package capability

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

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

// Prefixes returns the prefixes of the ids of all packages, by the names of what they identify.
func Prefixes() map[string]string {
	prefixes := make(map[string]string)
	for _, c := range All {
		maps.Copy(prefixes, c.Prefixes)
	}
	return prefixes
}

// PublicIDs replaces the UUIDs in a row of an invariant by the ids that all commands print: "run" and a UUID by "run"
// and the run's id.
func PublicIDs(row string) string {
	prefixes := Prefixes()
	// Invariants write a kind of record before its UUID. A UUID without a known kind stays as it is.
	kinds := strings.Join(slices.Collect(maps.Keys(prefixes)), "|")
	uuids := regexp.MustCompile(`\b(` + kinds + `) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b`)
	return uuids.ReplaceAllStringFunc(row, func(found string) string {
		kind, uuid, _ := strings.Cut(found, " ")
		var id pgtype.UUID
		if err := id.Scan(uuid); err != nil {
			return found
		}
		return kind + " " + store.ID(id.Bytes).Text(prefixes[kind])
	})
}
