package schema

import (
	"context"
	"strings"

	"aiv/store"

	"github.com/jackc/pgx/v5"
)

// execStatement executes a statement of a migration, or its form in a distributed database.
func execStatement(ctx context.Context, tx pgx.Tx, sql string) error {
	// Whether the database is distributed is read only for a statement that has another form there.
	all := []string{sql}
	if form := distributedForm(sql); form != nil {
		if distributed, err := isDistributed(ctx, tx); err != nil {
			return err
		} else if distributed {
			all = form
		}
	}
	for _, sql := range all {
		if _, err := tx.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// isDistributed reports whether Distribute has placed the tables of the database.
func isDistributed(ctx context.Context, db store.Querier) (is bool, err error) {
	is, err = HasCitus(ctx, db)
	if err == nil && is {
		err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass($1))`, colocated).Scan(&is)
	}
	return is, err
}

// distributedForm returns the statements to execute in a distributed database in place of one of a migration, or nil.
func distributedForm(sql string) []string {
	for _, form := range distributedForms {
		// Comments may precede the command, so it is looked for at the beginning of a line.
		if strings.Contains(sql, "\n"+form.begins) {
			return form.statements
		}
	}
	return nil
}

// distributedForms are the forms in a distributed database of statements of migrations that Citus refuses there. The
// files themselves cannot be changed, because databases have their checksums.
var distributedForms = []struct {
	begins     string // the statement's line with the command
	statements []string
}{
	// Citus adds no column together with its constraint.
	{"ALTER TABLE measurement_runs ADD COLUMN jobs_counted", []string{
		`ALTER TABLE measurement_runs ADD COLUMN jobs_counted integer NOT NULL DEFAULT 0`,
		`ALTER TABLE measurement_runs ADD CONSTRAINT measurement_runs_jobs_counted_check CHECK (jobs_counted >= 0)`,
	}},
	// A table that is not distributed cannot refer to one that is.
	{"CREATE TABLE schedule_occurrences (", []string{
		overOneConnection,
		`SELECT create_distributed_table('schedules', 'account_id', colocate_with => '` + colocated + `')`,
		`
CREATE TABLE schedule_occurrences (
  account_id   uuid NOT NULL,
  schedule_id  uuid NOT NULL,
  due_at       timestamptz NOT NULL,
  last_due_at  timestamptz NOT NULL,
  count        integer NOT NULL CHECK (count >= 1),
  status       text COLLATE "C" NOT NULL CHECK (status IN ('created', 'skipped')),
  code         text COLLATE "C",
  detail       text,
  run_id       uuid,
  created_at   timestamptz NOT NULL,
  evaluated_at timestamptz,
  PRIMARY KEY (account_id, schedule_id, due_at),
  CHECK ((status = 'created') = (code IS NULL)),
  CHECK ((code IS NULL) = (detail IS NULL)),
  CHECK (status = 'created' OR run_id IS NULL AND evaluated_at IS NULL),
  CHECK (last_due_at >= due_at AND (count = 1) = (last_due_at = due_at))
)`,
		`SELECT create_distributed_table('schedule_occurrences', 'account_id', colocate_with => '` + colocated + `')`,
		`
ALTER TABLE schedule_occurrences ADD CONSTRAINT schedule_occurrences_account_id_schedule_id_fkey
  FOREIGN KEY (account_id, schedule_id) REFERENCES schedules (account_id, id)`,
		`
ALTER TABLE schedule_occurrences ADD CONSTRAINT schedule_occurrences_account_id_run_id_fkey
  FOREIGN KEY (account_id, run_id) REFERENCES measurement_runs (account_id, id)`,
	}},
}
