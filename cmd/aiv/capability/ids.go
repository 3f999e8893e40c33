package capability

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"aiv/store"
)

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
