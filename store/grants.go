package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// grants are what `aiv serve` does, and nothing else: a role that has these can run it, and whoever takes that role over
// can neither change a table's form, nor a key, a limit or a price, nor read what operators did or what is charged.
var grants = []struct{ privileges, tables string }{
	{"SELECT", "schema_migrations, shared_secrets, plans, accounts, credentials, identity_revision, methodologies, provider_dependencies, models, questions, " +
		"question_tags, catalog_revision, recommendations, alerts"},
	{"SELECT, INSERT, UPDATE", "api_rate_limit_buckets, account_months"},
	{"SELECT, INSERT", "measurement_runs, measurement_run_models"},
	{"INSERT", "measurement_jobs, usage_records"},
	{"EXECUTE", "FUNCTION cancel_run"},
	// Old keys are purged, those that nobody else is purging: to lock a row, some column must be one's to update.
	{"SELECT, INSERT, DELETE, UPDATE (created_at)", "idempotency_records"},
}

// Grant gives a role the rights that `aiv serve` needs, and takes all others away that it was given by name on the tables
// of the schema. The role must exist.
func Grant(ctx context.Context, pool *pgxpool.Pool, role string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := mayBeBound(ctx, tx, role); err != nil {
			return err
		}
		var schema string
		if err := tx.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
			return err
		}
		who, where := pgx.Identifier{role}.Sanitize(), pgx.Identifier{schema}.Sanitize()
		statements := []string{
			"REVOKE ALL ON ALL TABLES IN SCHEMA " + where + " FROM " + who,
			"REVOKE ALL ON ALL SEQUENCES IN SCHEMA " + where + " FROM " + who,
			"REVOKE ALL ON SCHEMA " + where + " FROM " + who,
			"GRANT USAGE ON SCHEMA " + where + " TO " + who,
		}
		for _, g := range grants {
			statements = append(statements, "GRANT "+g.privileges+" ON "+g.tables+" TO "+who)
		}
		for _, sql := range statements {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("granting rights to %s: %w", role, err)
			}
		}
		return nil
	})
}

// mayBeBound refuses a role that would keep all rights whatever it is granted.
func mayBeBound(ctx context.Context, tx pgx.Tx, role string) error {
	var super, owns bool
	err := tx.QueryRow(ctx, `
		SELECT rolsuper, pg_has_role(oid, (SELECT relowner FROM pg_class WHERE oid = 'schema_migrations'::regclass), 'MEMBER')
		FROM pg_roles WHERE rolname = $1`, role).Scan(&super, &owns)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("there is no role %q; make it with CREATE ROLE", role)
	case err != nil:
		return err
	case super:
		return fmt.Errorf("%q is a superuser, who may do anything; choose another role", role)
	case owns:
		return fmt.Errorf("%q owns the tables, or is a member of their owner; choose another role", role)
	}
	return nil
}
