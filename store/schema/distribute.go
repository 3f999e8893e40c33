package schema

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Placement says where the rows of a table are in a database that Citus distributes.
type Placement string

const (
	ByAccount   Placement = "by account"  // on the server of the account, by account_id
	Reference   Placement = "reference"   // on every server
	Coordinator Placement = "coordinator" // on the coordinator, in transactions on several servers
	Local       Placement = "local"       // on the coordinator, unknown to Citus
)

// colocated is the table whose distribution all tables by account share, so that a statement about one account
// concerns one server.
const colocated = "measurement_runs"

// placements returns the tables in the order in which Distribute places them: colocated, the other tables by account,
// those on every server, and the others.
func placements(all []Capability) []Table {
	order := []Placement{ByAccount, Reference, Coordinator, Local}
	rank := func(t Table) int {
		if t.Name == colocated {
			return -1
		}
		return slices.Index(order, t.Placement)
	}
	tables := Tables(all)
	slices.SortStableFunc(tables, func(a, b Table) int { return cmp.Compare(rank(a), rank(b)) })
	return tables
}

// ErrNoCitus is returned by CheckCitus and Distribute for a database without the extension citus.
var ErrNoCitus = errors.New("the extension citus is missing in this database; run CREATE EXTENSION citus on a server that has it, " +
	"or leave the database as it is: nothing was changed")

// A PlacedTable is a table and where its rows are.
type PlacedTable struct {
	Table string
	Want  Placement
	Is    Placement
	Size  int64 // bytes on all servers; 0 in a result of Distribute
}

// HasCitus reports whether the database has the extension citus.
func HasCitus(ctx context.Context, db store.Querier) (found bool, err error) {
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')`).Scan(&found)
	return found, err
}

// CheckCitus returns ErrNoCitus if the database does not have the extension citus.
func CheckCitus(ctx context.Context, pool *pgxpool.Pool) error {
	found, err := HasCitus(ctx, pool)
	if err == nil && !found {
		return ErrNoCitus
	}
	return err
}

// Placements returns where the tables are. It fails in a database without citus.
func Placements(ctx context.Context, pool *pgxpool.Pool, all []Capability) ([]PlacedTable, error) {
	return readPlacements(ctx, pool, all, selectSizedPlacements)
}

// Distribute places the tables that are not yet placed, and returns them. It runs in one transaction, so it can be
// repeated after any failure and after later migrations. It copies existing rows, and blocks writes to the tables while
// it does.
//
// Foreign keys between tables of which only one is distributed are not supported by Citus, so they are dropped first
// and added again at the end. Triggers of the tables are dropped: they cannot change other tables on a cluster. The
// statements of operators change the revision of credentials themselves.
//
// It also applies workerSettings on all other servers, which may have been added since the last time.
func Distribute(ctx context.Context, pool *pgxpool.Pool, all []Capability) (placed []PlacedTable, err error) {
	if err := CheckCitus(ctx, pool); err != nil {
		return nil, err
	}
	conn, err := lockMigrations(ctx, pool)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		tables, err := readPlacements(ctx, tx, all, selectPlacements)
		if err != nil {
			return err
		}
		placed = slices.DeleteFunc(tables, func(t PlacedTable) bool { return t.Is == t.Want })
		if len(placed) > 0 {
			if err := place(ctx, tx, placed); err != nil {
				return err
			}
			// Processes that began before the database had Citus have not counted their leases in this table.
			if slices.ContainsFunc(placed, func(t PlacedTable) bool { return t.Table == "job_holds" }) {
				if _, err := tx.Exec(ctx, fillHolds); err != nil {
					return err
				}
			}
		}
		// The function is replaced each time, because a migration may have replaced it by its other form.
		_, err = tx.Exec(ctx, distributedCancelRun)
		return err
	})
	if err == nil {
		err = applyWorkerSettings(ctx, conn)
	}
	if err != nil {
		return nil, fmt.Errorf("distribute the tables: %w", err)
	}
	return placed, nil
}

// applyWorkerSettings sets workerSettings for the database on the other servers.
func applyWorkerSettings(ctx context.Context, conn *pgx.Conn) error {
	for _, s := range workerSettings {
		var failed string
		err := conn.QueryRow(ctx, setWorkerSetting, s.name, s.value).Scan(&failed)
		if err == nil && failed != "" {
			err = errors.New(failed)
		}
		if err != nil {
			return fmt.Errorf("set %s on the other servers: %w", s.name, err)
		}
	}
	return nil
}

// workerSettings are the settings of the database's sessions on the other servers. The coordinator does not propagate
// its session settings.
var workerSettings = []struct{ name, value string }{
	// Longer than another process's batch takes. A server's failure can leave a transaction that holds its locks until
	// the coordinator has ended it, and the other accounts of a batch must not wait for that. It also ends most
	// transactions that wait for each other sooner than Citus finds them, by default every 2 s.
	{"lock_timeout", "1s"},
	// A server does not learn that the coordinator gave up its connections while the network was down. With the defaults
	// of TCP its idle sessions would hold their locks for two hours. No probes are sent while data is unacknowledged.
	{"tcp_keepalives_idle", "5"}, {"tcp_keepalives_interval", "1"}, {"tcp_keepalives_count", "5"},
}

// place executes the statements that place tables: it drops foreign keys and triggers, distributes, and adds the keys
// again.
func place(ctx context.Context, tx pgx.Tx, tables []PlacedTable) error {
	var names []string
	for _, t := range tables {
		// A table with another placement would have to be moved back first, which place does not do.
		if t.Is != Local {
			return fmt.Errorf("the table %s is %s and should be %s; see undistribute_table of Citus", t.Table, t.Is, t.Want)
		}
		names = append(names, t.Table)
	}
	// statements come first and in this order; after has what adds the foreign keys again.
	statements := []string{overOneConnection}
	var after []string
	// Each row has a statement that drops and one that adds again. The second is empty for triggers.
	for _, sql := range []string{selectForeignKeys, selectTriggers} {
		rows, err := tx.Query(ctx, sql, names)
		if err != nil {
			return err
		}
		var drop, add string
		if _, err := pgx.ForEachRow(rows, []any{&drop, &add}, func() error {
			statements = append(statements, drop)
			if add != "" {
				after = append(after, add)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for _, t := range tables {
		switch {
		case t.Want == Coordinator:
			statements = append(statements, `SELECT citus_add_local_table_to_metadata('`+t.Table+`')`)
			continue
		case t.Want == Reference:
			statements = append(statements, `SELECT create_reference_table('`+t.Table+`')`)
		// This table comes first and begins the group of shards that the other tables join.
		case t.Table == colocated:
			statements = append(statements, `SELECT create_distributed_table('`+t.Table+`', 'account_id', colocate_with => 'none')`)
		default:
			statements = append(statements, `SELECT create_distributed_table('`+t.Table+`', 'account_id', colocate_with => '`+colocated+`')`)
		}
		// The rows were copied to the shards, and no statement reads what remains of them here.
		statements = append(statements, `SELECT truncate_local_data_after_distributing_table('`+t.Table+`')`)
	}
	for _, sql := range append(statements, after...) {
		if _, err := tx.Exec(ctx, sql); err != nil {
			// The error names the first line of the statement, which may be long.
			first, _, _ := strings.Cut(strings.TrimSpace(sql), "\n")
			return fmt.Errorf("%s: %w", first, err)
		}
	}
	return nil
}

// readPlacements returns the tables with their placements; sql is selectPlacements or selectSizedPlacements.
func readPlacements(ctx context.Context, db store.Querier, all []Capability, sql string) ([]PlacedTable, error) {
	var tables []PlacedTable
	var names []string
	for _, t := range placements(all) {
		names = append(names, t.Name)
		tables = append(tables, PlacedTable{Table: t.Name, Want: t.Placement})
	}
	rows, err := db.Query(ctx, sql, names)
	if err != nil {
		return nil, err
	}
	var i int
	var is string
	var size int64
	_, err = pgx.ForEachRow(rows, []any{&i, &is, &size}, func() error {
		// The numbers of WITH ORDINALITY begin at 1.
		tables[i-1].Is, tables[i-1].Size = Placement(is), size
		return nil
	})
	return tables, err
}

// overOneConnection makes Citus use one connection to each server in a transaction that changes several tables with
// foreign keys.
const overOneConnection = `SET LOCAL citus.multi_shard_modify_mode = 'sequential'`

// distributedCancelRun replaces the function of the migrations by the same in PL/pgSQL: Citus cannot plan a statement
// of an SQL function before it has the values of the function's parameters, nor use the privileges of two roles in one
// transaction. A role of aiv serve has the privilege to cancel runs itself there. The first UPDATE locks the row,
// because Citus refuses clock_timestamp() in the second one. The time follows the DELETE, which waits for a claim of
// the run's jobs.
const distributedCancelRun = `
CREATE OR REPLACE FUNCTION cancel_run(account uuid, run uuid) RETURNS SETOF measurement_runs
LANGUAGE plpgsql SECURITY INVOKER SET search_path FROM CURRENT AS $$
DECLARE
  locked_at timestamptz;
BEGIN
  UPDATE measurement_runs SET jobs_returned = jobs_returned WHERE account_id = account AND id = run AND status IN ('queued', 'running');
  IF NOT FOUND THEN
    RETURN;
  END IF;
  DELETE FROM job_queue WHERE account_id = account AND run_id = run;
  locked_at := clock_timestamp();
  RETURN QUERY UPDATE measurement_runs SET status = 'canceled', finished_at = locked_at, jobs_returned = 0,
      jobs_canceled = total_jobs - jobs_completed - jobs_failed
    WHERE account_id = account AND id = run RETURNING *;
  INSERT INTO job_arrivals (account_id, run_id, canceled) VALUES (account, run, true);
END $$`

// fillHolds counts the leases of jobs that are held, as package runs/jobs does on Citus.
const fillHolds = `
INSERT INTO job_holds (account_id, run_id, provider_code, jobs)
SELECT account_id, run_id, provider_code, sum(last_ordinal - ordinal + 1) FROM job_leases WHERE state = 'held' GROUP BY account_id, run_id, provider_code
ON CONFLICT (provider_code, account_id, run_id) DO UPDATE SET jobs = excluded.jobs`

const (
	// pg_dist_partition has 'h' for tables distributed by a hash, and 'n' for reference tables, which are replicated by
	// two-phase commits, and for tables of the coordinator. Some of these are in it only because of their foreign keys.
	placementOf = `
CASE WHEN p.partmethod = 'h' THEN 'by account' WHEN p.partmethod = 'n' AND p.repmodel = 't' THEN 'reference'
  WHEN p.partmethod = 'n' AND NOT p.autoconverted THEN 'coordinator' ELSE 'local' END`

	// selectPlacements returns the number of each table in $1, its placement, and no size.
	selectPlacements = `
SELECT no, ` + placementOf + `, 0::bigint
FROM unnest($1::text[]) WITH ORDINALITY AS t (name, no) LEFT JOIN pg_dist_partition p ON p.logicalrelid = to_regclass(t.name)`

	selectSizedPlacements = `
SELECT no, ` + placementOf + `,
  CASE WHEN p.logicalrelid IS NULL THEN pg_total_relation_size(to_regclass(t.name)) ELSE citus_total_relation_size(p.logicalrelid) END
FROM unnest($1::text[]) WITH ORDINALITY AS t (name, no) LEFT JOIN pg_dist_partition p ON p.logicalrelid = to_regclass(t.name)`

	// setWorkerSetting returns the first server on which the setting $1 failed, or "". It holds for sessions that begin
	// later.
	setWorkerSetting = `
SELECT COALESCE(min(nodename || ':' || nodeport || ': ' || result) FILTER (WHERE NOT success), '')
FROM run_command_on_workers(format('ALTER DATABASE %I SET %I = %L', current_database(), $1::text, $2::text))`

	// selectForeignKeys returns the statements that drop and add the foreign keys from and to tables.
	selectForeignKeys = `
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
  format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint
WHERE contype = 'f' AND (conrelid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) name)
  OR confrelid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) name))
ORDER BY conrelid, conname`

	// selectTriggers returns the statements that drop the triggers of tables. Internal ones belong to foreign keys.
	selectTriggers = `
SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass), ''
FROM pg_trigger
WHERE NOT tgisinternal AND tgrelid = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) name)
ORDER BY tgrelid, tgname`
)
