package runs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"aiv/store/storetest"
)

// TestDecoderEqualsPgx compares the decoder with pgx, in the binary format and in the text format.
func TestDecoderEqualsPgx(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	const values = `
SELECT id, md5(id::text)::uuid, md5(status)::uuid, status, 'grounded', 'AIVM-1.0', models, questions, 20::smallint,
  'it-IT', 'IT', 'it', 2147483647, 1, 2, 3, 0, '1969-12-31T23:59:59.999999Z'::timestamptz, started, finished
FROM (VALUES
  ('00000000-0000-7000-8000-0000000000ff'::uuid, 'queued', '{}'::text[], '{a}'::text[], NULL::timestamptz, NULL::timestamptz),
  ('ffffffff-ffff-ffff-ffff-ffffffffffff', 'é "', '{"",",","{}","NULL"}', ARRAY['é', repeat('x', 10000)], '2026-11-21T20:00:00.000001Z', '9999-12-31T00:00Z')
) AS v (id, status, models, questions, started, finished) ORDER BY id`
	read := func(row pgx.RowToFunc[Run], mode pgx.QueryExecMode) []Run {
		t.Helper()
		rows, err := pool.Query(t.Context(), `SELECT * FROM (`+values+`) r`, mode)
		if err != nil {
			t.Fatal(err)
		}
		if binary := isBinary(rows.FieldDescriptions()); binary != (mode == pgx.QueryExecModeCacheStatement) {
			t.Errorf("mode %v: the columns are binary: %v", mode, binary)
		}
		found, err := pgx.CollectRows(rows, row)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	want := read(pgx.RowToStructByPos[Run], pgx.QueryExecModeCacheStatement)
	for name, mode := range map[string]pgx.QueryExecMode{"binary": pgx.QueryExecModeCacheStatement, "text": pgx.QueryExecModeSimpleProtocol} {
		if diff := cmp.Diff(want, read(newDecoder().row, mode)); diff != "" {
			t.Errorf("%s (-pgx +decoder):\n%s", name, diff)
		}
	}
}
