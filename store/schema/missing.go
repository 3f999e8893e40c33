package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A PrivilegeError reports that a role lacks privileges of a service. They were never granted, the role has the
// privileges of the other service, or a migration has made more of them necessary.
type PrivilegeError struct {
	Role    string
	Service Service
	Missing []string // as in GRANT, such as SELECT ON plans
	Other   bool     // the role has the privileges of the other service
}

func (e *PrivilegeError) Error() string {
	// The message names some of the privileges, because after an upgrade many can be missing.
	const named = 3
	missing := strings.Join(e.Missing[:min(named, len(e.Missing))], ", ")
	if more := len(e.Missing) - named; more > 0 {
		missing += fmt.Sprintf(" and %d more", more)
	}
	lacks := fmt.Sprintf("the role %q lacks privileges that aiv %s needs: %s; ", e.Role, e.Service, missing)
	if e.Other { // Grant would revoke them
		return lacks + fmt.Sprintf("it has the privileges of aiv %s; give aiv %s another role", e.Service.other(), e.Service)
	}
	return lacks + fmt.Sprintf("run `aiv migrate %s %s` as the owner of the tables", e.Service.grantFlag(), e.Role)
}

// other returns the service that is not s.
func (s Service) other() Service {
	if s == Dispatch {
		return Serve
	}
	return Dispatch
}

// grantFlag returns the flag of aiv migrate that grants the privileges of the service.
func (s Service) grantFlag() string {
	if s == Dispatch {
		return "-grant-dispatch"
	}
	return "-grant"
}

// CheckPrivileges returns a [*PrivilegeError] if a role lacks privileges of a service.
func CheckPrivileges(ctx context.Context, pool *pgxpool.Pool, all []Capability, service Service, role string) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		var missing []string
		needed := service.grants(all, store.IsCitus(conn.Conn()))
		if err := conn.QueryRow(ctx, `SELECT `+missingPrivileges, privilegeArgs(needed, role)...).Scan(&missing); err != nil {
			return fmt.Errorf("read the privileges of %s: %w", role, err)
		}
		if len(missing) > 0 {
			return newPrivilegeError(ctx, conn, all, role, service, missing)
		}
		return nil
	})
}

// newPrivilegeError returns a [*PrivilegeError].
func newPrivilegeError(ctx context.Context, db store.Querier, all []Capability, role string, service Service, missing []string) error {
	other, err := hasPrivileges(ctx, db, all, role, service.other())
	if err != nil {
		return err
	}
	return &PrivilegeError{role, service, missing, other}
}

// hasPrivileges reports whether a role has been granted the privileges of a service, judged by the tables into which
// only this service inserts.
func hasPrivileges(ctx context.Context, db store.Querier, all []Capability, role string, service Service) (has bool, err error) {
	inserts := func(p Privilege) bool { return p.name == Insert.name }
	var tables []string
	for _, c := range all {
		for _, t := range c.Tables {
			// own are the privileges of this service on the table, and others are the privileges of the other
			// service.
			own, others := t.Serve, t.Dispatch
			if service == Dispatch {
				own, others = others, own
			}
			if slices.ContainsFunc(own, inserts) && !slices.ContainsFunc(others, inserts) {
				tables = append(tables, t.Name)
			}
		}
	}
	if err := db.QueryRow(ctx, mayInsert, role, tables).Scan(&has); err != nil {
		return false, fmt.Errorf("read the privileges of %s: %w", role, err)
	}
	return has, nil
}

// mayInsert looks at what the role itself was granted, not at memberships: it tells which service the role is for.
const mayInsert = `
SELECT EXISTS (
  SELECT FROM unnest($2::text[]) AS t (name) JOIN pg_class c ON c.oid = to_regclass(t.name)
    CROSS JOIN aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
  WHERE r.rolname = $1 AND a.privilege_type = 'INSERT')`

// A GrantedRole is a role and the service of which it was granted the privileges.
type GrantedRole struct {
	Role    string
	Service Service
}

// GrantedRoles returns the roles that were granted the privileges of a service, by the audit log. It leaves out roles
// whose privileges were all revoked.
func GrantedRoles(ctx context.Context, pool *pgxpool.Pool) ([]GrantedRole, error) {
	roles, err := store.Collect(ctx, pool, pgx.RowToStructByPos[GrantedRole], selectGrantedRoles,
		grantAction(Serve), grantAction(Dispatch), string(Serve), string(Dispatch))
	if err != nil {
		return nil, fmt.Errorf("read the granted roles: %w", err)
	}
	return roles, nil
}

// grantAction is the action of Grant in the audit log.
func grantAction(s Service) string { return "migrate." + strings.TrimPrefix(s.grantFlag(), "-") }

// selectGrantedRoles takes the latest grant of each role that still exists and has a privilege in the schema of the
// tables.
const selectGrantedRoles = `
SELECT subject, CASE action WHEN $1 THEN $3 ELSE $4 END
FROM (SELECT DISTINCT ON (subject) subject, action FROM audit_log WHERE action IN ($1, $2) ORDER BY subject, id DESC) AS latest
JOIN pg_roles ON rolname = subject
WHERE EXISTS (
  SELECT FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
  WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'schema_migrations'::regclass) AND a.grantee = pg_roles.oid)
ORDER BY subject`

// privilegeArgs returns the parameters of missingPrivileges for a role; if empty, the session's.
func privilegeArgs(grants []grant, role string) []any {
	var names, objects, columns []string
	for _, g := range grants {
		for _, p := range g.privileges {
			// A privilege on a whole table is checked with an empty name of a column.
			of := p.columns
			if p.whole() {
				of = []string{""}
			}
			for _, column := range of {
				names, objects, columns = append(names, p.name), append(objects, g.object), append(columns, column)
			}
		}
	}
	return []any{pgx.QueryExecModeExec, names, objects, columns, role}
}

// missingPrivileges is a scalar SQL expression of type text[]: which of the privileges $1 on the objects $2, or on
// their columns $3, the role $4 lacks. Objects that do not exist yet are ignored: a pending migration creates them.
// Without the privilege to use the schema of the tables, nothing in it is found.
const missingPrivileges = `
ARRAY(
  SELECT 'USAGE ON SCHEMA ' || quote_ident(nspname)
  FROM (SELECT COALESCE(NULLIF($4::text, '')::name, current_user)) AS r (role), unnest(string_to_array(current_setting('search_path'), ',')) AS path (name)
    JOIN pg_namespace n ON nspname = btrim(name, ' "') JOIN pg_class c ON relnamespace = n.oid AND relname = 'schema_migrations'
  WHERE NOT has_schema_privilege(role, n.oid, 'USAGE')
UNION ALL
  SELECT privilege || CASE "column" WHEN '' THEN '' ELSE ' (' || "column" || ')' END || ' ON ' || object
  FROM (SELECT COALESCE(NULLIF($4::text, '')::name, current_user)) AS r (role),
    unnest($1::text[], $2::text[], $3::text[]) AS u (privilege, object, "column")
  WHERE NOT CASE
    WHEN object LIKE 'FUNCTION %' THEN (
      SELECT bool_and(has_function_privilege(role, oid, privilege)) FROM pg_proc WHERE proname = substr(object, 10) AND pg_function_is_visible(oid))
    WHEN object LIKE 'SEQUENCE %' THEN has_sequence_privilege(role, to_regclass(substr(object, 10)), privilege)
    WHEN "column" = '' THEN has_table_privilege(role, to_regclass(object), privilege)
    ELSE (
      SELECT has_column_privilege(role, attrelid, attnum, privilege) FROM pg_attribute
      WHERE attrelid = to_regclass(object) AND attname = "column" AND NOT attisdropped)
  END)`
