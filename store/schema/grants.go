package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Grant gives a role the privileges of a service, and revokes all others that the role itself was granted on the schema
// and its tables. The role must exist. On a cluster, privileges on columns hold for the role on the coordinator; on the
// other servers it has the privilege on the whole table. Grant refuses a role that would have more privileges anyway,
// and the role of the other service, whose processes it would stop. The audit log records the actor.
func Grant(ctx context.Context, pool *pgxpool.Pool, all []Capability, service Service, role, actor string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// PostgreSQL does not let two transactions change the privileges on a table at once.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrateLock); err != nil {
			return err
		}
		if err := checkRole(ctx, tx, role); err != nil {
			return err
		}
		var schema string
		if err := tx.QueryRow(ctx, `SELECT current_schema()`).Scan(&schema); err != nil {
			return err
		}
		isOther, err := hasPrivileges(ctx, tx, all, role, service.other())
		if err != nil {
			return err
		}
		isOwn, err := hasPrivileges(ctx, tx, all, role, service)
		if err != nil {
			return err
		}
		if isOther && !isOwn { // if it has the privileges of both, the other's are revoked
			return fmt.Errorf("%q is the role of aiv %s; give aiv %s another role, or run REVOKE ALL ON ALL TABLES IN SCHEMA %s FROM %s first",
				role, service.other(), service, pgx.Identifier{schema}.Sanitize(), pgx.Identifier{role}.Sanitize())
		}
		for _, sql := range grantStatements(service.grants(all, store.IsCitus(tx.Conn())), role, schema, store.IsCitus(tx.Conn())) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return fmt.Errorf("grant privileges to %s: %w", role, err)
			}
		}
		// These checks see the privileges that were granted above. If one fails, the transaction grants nothing.
		if err := checkCreate(ctx, tx, role, schema); err != nil {
			return err
		}
		if err := checkTables(ctx, tx, role); err != nil {
			return err
		}
		return store.Audit(ctx, tx, store.Change{Actor: actor, Action: grantAction(service), Subject: role})
	})
}

// grantStatements returns the statements that give a role these privileges in a schema, and no others.
func grantStatements(grants []grant, role, schema string, onCitus bool) []string {
	role, schema = pgx.Identifier{role}.Sanitize(), pgx.Identifier{schema}.Sanitize()
	// All is revoked first, so that the role keeps nothing that an earlier version has granted.
	statements := []string{
		"REVOKE ALL ON ALL TABLES IN SCHEMA " + schema + " FROM " + role,
		"REVOKE ALL ON ALL SEQUENCES IN SCHEMA " + schema + " FROM " + role,
		"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA " + schema + " FROM " + role,
		"REVOKE ALL ON SCHEMA " + schema + " FROM " + role,
		"GRANT USAGE ON SCHEMA " + schema + " TO " + role,
	}
	var narrow []string // to columns, on the coordinator: Citus grants no privileges on columns to the role on other servers
	for _, g := range grants {
		to := " ON " + g.object + " TO " + role
		var list []string
		// On Citus a privilege on columns is granted on the whole table everywhere, and then narrowed on the
		// coordinator alone.
		for _, p := range g.privileges {
			if p.whole() || !onCitus {
				list = append(list, p.String())
				continue
			}
			list = append(list, p.name)
			narrow = append(narrow, "REVOKE "+p.name+" ON "+g.object+" FROM "+role)
			if len(p.columns) > 0 {
				narrow = append(narrow, "GRANT "+p.String()+to)
			}
		}
		statements = append(statements, "GRANT "+strings.Join(list, ", ")+to)
	}
	if !onCitus {
		return statements
	}
	return slices.Concat([]string{overOneConnection}, statements, []string{"SET LOCAL citus.enable_ddl_propagation = off"}, narrow)
}

// checkRole refuses a role that has all privileges whatever it is granted.
func checkRole(ctx context.Context, tx pgx.Tx, role string) error {
	var super, owns bool
	err := tx.QueryRow(ctx, `
		SELECT rolsuper, pg_has_role(oid, (SELECT relowner FROM pg_class WHERE oid = 'schema_migrations'::regclass), 'MEMBER')
		FROM pg_roles WHERE rolname = $1`, role).Scan(&super, &owns)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("there is no role %q; create it with CREATE ROLE", role)
	case err != nil:
		return err
	case super:
		return fmt.Errorf("%q is a superuser, which has all privileges; choose another role", role)
	case owns:
		return fmt.Errorf("%q owns the tables, or is a member of their owner; choose another role", role)
	}
	return nil
}

// reachable are the roles whose privileges a role has or can take by SET ROLE, which needs no INHERIT: itself and those
// that it is a member of.
const reachable = `reachable AS (SELECT r.oid FROM pg_roles r WHERE pg_has_role($1::regrole, r.oid, 'MEMBER'))`

// checkTables refuses a role that has a privilege on a table or a column through PUBLIC or through a role that it is a
// member of, such as pg_write_all_data.
func checkTables(ctx context.Context, tx pgx.Tx, role string) error {
	var table, privilege string
	err := tx.QueryRow(ctx, `
WITH `+reachable+`, tables AS (SELECT * FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'),
granted AS ( -- to the role itself
  SELECT c.oid, 0 AS attnum, a.privilege_type FROM tables c CROSS JOIN aclexplode(c.relacl) a WHERE a.grantee = $1::regrole
  UNION ALL SELECT c.oid, n.attnum, a.privilege_type FROM tables c JOIN pg_attribute n ON n.attrelid = c.oid CROSS JOIN aclexplode(n.attacl) a
  WHERE a.grantee = $1::regrole)
SELECT c.relname, p.type FROM tables c CROSS JOIN unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p (type)
WHERE EXISTS (SELECT FROM reachable r WHERE has_table_privilege(r.oid, c.oid, p.type))
  AND NOT EXISTS (SELECT FROM granted g WHERE g.oid = c.oid AND g.attnum = 0 AND g.privilege_type = p.type)
UNION ALL
SELECT c.relname, p.type || ' (' || n.attname || ')'
FROM tables c JOIN pg_attribute n ON n.attrelid = c.oid AND n.attnum > 0 AND NOT n.attisdropped
CROSS JOIN unnest('{SELECT,INSERT,UPDATE,REFERENCES}'::text[]) AS p (type)
WHERE EXISTS (SELECT FROM reachable r WHERE has_column_privilege(r.oid, c.oid, n.attnum, p.type))
  AND NOT EXISTS (SELECT FROM granted g WHERE g.oid = c.oid AND g.attnum IN (0, n.attnum) AND g.privilege_type = p.type)
ORDER BY 1, 2 LIMIT 1`, pgx.Identifier{role}.Sanitize()).Scan(&table, &privilege) // the text of a regrole
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%q has privileges through PUBLIC or through a role that it is a member of, such as %s on %s; "+
		"nothing was granted; revoke these, or choose another role", role, privilege, table)
}

// checkCreate refuses to grant privileges in a schema where the role can create objects, by a privilege of PUBLIC or of
// a role that it is a member of. It could create a function there that the owner's statements call instead of
// PostgreSQL's, with the owner's privileges. Databases made before PostgreSQL 15 grant this privilege on schema public
// to PUBLIC.
func checkCreate(ctx context.Context, tx pgx.Tx, role, schema string) error {
	var public, member bool
	err := tx.QueryRow(ctx, `WITH `+reachable+`
SELECT has_schema_privilege('public', $2, 'CREATE'), EXISTS (SELECT FROM reachable r WHERE has_schema_privilege(r.oid, $2, 'CREATE'))`,
		pgx.Identifier{role}.Sanitize(), schema).Scan(&public, &member)
	switch in := (pgx.Identifier{schema}.Sanitize()); {
	case err != nil:
		return err
	case public:
		return fmt.Errorf("every role may create functions in schema %s, which the owner's commands could run; "+
			"nothing was granted; run REVOKE CREATE ON SCHEMA %s FROM PUBLIC as the schema's owner and repeat this command", schema, in)
	case member:
		return fmt.Errorf("%q is a member of a role that may create functions in schema %s, which the owner's commands could run; "+
			"nothing was granted; run REVOKE CREATE ON SCHEMA %s FROM that role, or choose another one", role, schema, in)
	}
	return nil
}
