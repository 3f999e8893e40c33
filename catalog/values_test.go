package catalog_test

import (
	"testing"

	"aiv/catalog"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// TestValuesMatchConstraints: the tables accept exactly the values that the package declares.
func TestValuesMatchConstraints(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	for constraint, want := range map[string][]string{
		"models_status_check": catalog.ModelStatuses, "questions_status_check": catalog.QuestionStatuses,
		"methodologies_status_check": catalog.MethodologyStatuses, "provider_dependencies_dependency_check": catalog.Dependencies,
		"models_id_check": {catalog.IDPattern().String()}, "questions_id_check": {catalog.IDPattern().String()},
		"methodologies_version_check": {catalog.MethodologyPattern().String()}, "providers_code_check": {catalog.ProviderPattern().String()},
	} {
		var got []string
		err := pool.QueryRow(t.Context(), `
SELECT array_agg(m[1])
FROM (SELECT oid FROM pg_constraint WHERE conname = $1 ORDER BY oid LIMIT 1) c, -- those of the shards on a cluster have the same name
  regexp_matches(pg_get_constraintdef(oid), '''([^'']+)''::', 'g') m`, constraint).Scan(&got)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", constraint, err, diff)
		}
	}
}
