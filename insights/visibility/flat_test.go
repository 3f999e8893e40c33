package visibility_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/visibility"
	"aiv/runs/answers"
	"aiv/store"
	"aiv/store/storetest"
)

// TestReadTouchesItsRunsOnly: a read touches only runs and facts of its account, and only of its window or run.
func TestReadTouchesItsRunsOnly(t *testing.T) {
	t.Parallel()
	storetest.SkipOnCitus(t, "about plans of one server")
	s, run := newRunningSite(t, 100)
	s.createBrand(t, brands.Own, "Kovalt")
	s.answer(t, s.dispatcher, slices.Repeat([]*answers.Answer{citing("Kovalt", "https://example.com/")}, 100)...)
	s.copyRun(t, run, s.account, 4) // on the days after it
	from := simpleRun(0).created
	filters := []visibility.Filter{{From: &from, To: new(from.AddDate(0, 0, 3))}, {Run: &run}, {}}
	var small []map[string]storetest.Cost
	for i := range filters {
		small = append(small, s.costs(t, &filters[i]))
	}
	check := func(what string, filters []visibility.Filter) {
		t.Helper()
		for i := range filters {
			for sql, cost := range s.costs(t, &filters[i]) {
				if before, ok := small[i][sql]; !ok || !before.Flat(cost) {
					t.Errorf("%s: filter %d: %+v before, %+v now, known: %t\n%s", what, i, before, cost, ok, sql)
				}
			}
		}
	}
	for range 8 {
		s.copyRun(t, run, s.newAccount(t), 50)
	}
	check("with other accounts", filters)
	s.copyRun(t, run, s.account, 200)
	check("with other runs", filters[:2])
}

// copyRun copies a run with its facts, and dates the copies some days after the account's other runs.
func (s *site) copyRun(t *testing.T, run, account store.ID, copies int) {
	t.Helper()
	s.exec(t, `
INSERT INTO measurement_runs
SELECT (jsonb_populate_record(r, jsonb_build_object('account_id', $2::uuid, 'id', gen_random_uuid(), 'credential_id', $2::uuid,
  'created_at', GREATEST(created_at, (SELECT max(created_at) FROM measurement_runs WHERE account_id = $2)) + interval '1 day' * n))).*
FROM measurement_runs r, generate_series(1, $3::integer) n WHERE id = $1`, run, account, copies)
	s.exec(t, `
INSERT INTO visibility_facts
SELECT r.account_id, r.id, first_ordinal, last_ordinal, jobs, revision, deleted, small, cells, sources, facts
FROM visibility_facts f, measurement_runs r WHERE f.run_id = $1 AND r.account_id = $2 ON CONFLICT DO NOTHING`, run, account)
}

// costs returns what the statements of reads cost.
func (s *site) costs(t *testing.T, f *visibility.Filter) map[string]storetest.Cost {
	t.Helper()
	s.exec(t, `VACUUM ANALYZE visibility_facts, measurement_runs, brands, brand_revisions`)
	statements := &storetest.Statements{}
	traced := storetest.WithTracer(t, s.pool, statements)
	defer traced.Close()
	_, err := visibility.ReadMetrics(t.Context(), traced, s.account, &visibility.Query{Filter: *f, Zone: time.UTC, GroupBy: []visibility.Dimension{visibility.ByDay}})
	must(t, err)
	_, err = visibility.ReadSources(t.Context(), traced, s.account, &visibility.SourceQuery{Filter: *f})
	must(t, err)
	costs := make(map[string]storetest.Cost)
	must(t, store.Snapshot(t.Context(), s.pool, func(tx pgx.Tx) error {
		for _, statement := range statements.Taken() {
			if strings.Contains(statement.SQL, " FROM ") || strings.Contains(statement.SQL, "\nFROM ") {
				costs[statement.SQL] = storetest.ExplainIn(t, tx, statement)
			}
		}
		return nil
	}))
	return costs
}
