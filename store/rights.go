package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A RightsError reports that a role lacks rights of a service. They were never granted, they are those of the other service, or
// the database was upgraded since.
type RightsError struct {
	Role    string
	Service Service
	Missing []string // as in GRANT, such as SELECT ON plans
}

func (e *RightsError) Error() string {
	const named = 3
	missing := strings.Join(e.Missing[:min(named, len(e.Missing))], ", ")
	if more := len(e.Missing) - named; more > 0 {
		missing += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("the role %q lacks privileges that aiv %s needs: %s; run `aiv migrate %s %s` as the owner of the tables",
		e.Role, e.Service, missing, e.Service.grantFlag(), e.Role)
}

func (s Service) grantFlag() string {
	if s == Dispatch {
		return "-grant-dispatch"
	}
	return "-grant"
}

// CheckRights returns a [*RightsError] if a role lacks rights of a service.
func CheckRights(ctx context.Context, pool *pgxpool.Pool, service Service, role string) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		var missing []string
		if err := conn.QueryRow(ctx, `SELECT `+missingRights, service.rights(IsCitus(conn.Conn())).args(role)...).Scan(&missing); err != nil {
			return fmt.Errorf("read the rights of %s: %w", role, err)
		}
		if len(missing) > 0 {
			return &RightsError{role, service, missing}
		}
		return nil
	})
}

// A GrantedRole is a role and the service of which it was granted the rights.
type GrantedRole struct {
	Role    string
	Service Service
}

// GrantedRoles returns the roles that were granted the rights of a service, by the audit log. It leaves out those from which all of
// them were revoked.
func GrantedRoles(ctx context.Context, pool *pgxpool.Pool) ([]GrantedRole, error) {
	rows, err := pool.Query(ctx, selectGrantedRoles, grantAction(Serve), grantAction(Dispatch), string(Serve), string(Dispatch))
	if err != nil {
		return nil, fmt.Errorf("read the granted roles: %w", err)
	}
	roles, err := pgx.CollectRows(rows, pgx.RowToStructByPos[GrantedRole])
	if err != nil {
		return nil, fmt.Errorf("read the granted roles: %w", err)
	}
	return roles, nil
}

// grantAction is the action of Grant in the audit log.
func grantAction(s Service) string { return "migrate." + strings.TrimPrefix(s.grantFlag(), "-") }

const selectGrantedRoles = `
SELECT subject, CASE action WHEN $1 THEN $3 ELSE $4 END
FROM (SELECT DISTINCT ON (subject) subject, action FROM audit_log WHERE action IN ($1, $2) ORDER BY subject, id DESC) AS latest
JOIN pg_roles ON rolname = subject
WHERE has_table_privilege(pg_roles.oid, 'schema_migrations', 'SELECT')
ORDER BY subject`

// rights are privileges on objects, one at each index.
type rights struct {
	privileges, objects []string
	columns             []string // of UPDATE; empty: the whole table
}

// rights returns the rights of a service in its session: on a cluster, those on the coordinator.
func (s Service) rights(onCitus bool) (r rights) {
	granted := grants
	if onCitus {
		granted = append(granted[:len(granted):len(granted)], citusGrants...)
	}
	for _, g := range granted {
		if g.service != s {
			continue
		}
		privileges, columns, ofColumns := strings.Cut(g.privileges, " (")
		list := strings.Split(privileges, ", ")
		for _, object := range strings.Split(g.objects, ", ") {
			for i, privilege := range list {
				if !ofColumns || i < len(list)-1 {
					r.add(privilege, object, "")
					continue
				}
				for column := range strings.SplitSeq(strings.TrimSuffix(columns, ")"), ", ") {
					if column != "" {
						r.add(privilege, object, column)
					}
				}
			}
		}
	}
	return r
}

func (r *rights) add(privilege, object, column string) {
	r.privileges, r.objects, r.columns = append(r.privileges, privilege), append(r.objects, object), append(r.columns, column)
}

// args returns the parameters of missingRights for a role; if empty, the session's.
func (r rights) args(role string) []any {
	return []any{unprepared, r.privileges, r.objects, r.columns, role}
}

// missingRights is a scalar SQL expression of type text[]: which of the rights $1 on the objects $2, or on their columns $3, the
// role $4 lacks. What does not exist is not missing: a migration makes it. Without the right to use the schema, nothing in it is found.
const missingRights = `
ARRAY(
  SELECT 'USAGE ON SCHEMA public' FROM (SELECT COALESCE(NULLIF($4::text, '')::name, current_user)) AS r (role), pg_namespace AS n
  WHERE n.nspname = 'public' AND NOT has_schema_privilege(r.role, n.oid, 'USAGE')
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
