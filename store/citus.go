package store

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// citusKey is the key of the connection's data that is set in a database with Citus.
const citusKey = "aiv.citus"

// IsCitus reports whether the database of a pool's connection has Citus.
func IsCitus(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[citusKey] == true }

// OnCitus is the form of a statement for databases with Citus, where it replaces the statement's usual one. It is given
// as the first argument; the others are the parameters of both. Such forms are in the *_citus.go files of the packages.
// A form may share parts with the usual one, and is never made by editing its text. Most statements concern one account
// and need no second form.
type OnCitus string

// ValuesOnCitus returns the rows of a VALUES list, each like row, in which a parameter is written as $. Citus sends the
// rows of an INSERT with VALUES over one connection to each server. For the rows of an INSERT with SELECT and ON
// CONFLICT it opens one for each shard. Each number of rows makes a different statement, so execute it with
// pgx.QueryExecModeExec, which does not prepare it.
func ValuesOnCitus(rows int, row string) string {
	var b strings.Builder
	n := 0
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		for _, c := range []byte(row) {
			if b.WriteByte(c); c == '$' {
				n++
				b.WriteString(strconv.Itoa(n))
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

// OfAccounts is the form on Citus of a statement that ends with a join of a table and arrays of keys. It adds the
// condition that the table's rows are of the accounts in $1. Citus does not derive that from the join, and would run
// the statement on every shard.
func OfAccounts(table, sql string) OnCitus {
	return OnCitus(sql + ` AND ` + table + `.account_id = ANY ($1)`)
}

// RewriteQuery implements [pgx.QueryRewriter].
func (s OnCitus) RewriteQuery(_ context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	if IsCitus(conn) {
		return string(s), args, nil
	}
	return sql, args, nil
}

// A planner prepares the sessions of a pool for a database with Citus, which makes no generic plan for most statements:
// it must know the values of their parameters to know which servers they concern. The first session asks whether the
// database has Citus; on plain PostgreSQL the later ones cost no round trip.
type planner struct{ plain atomic.Bool }

// afterConnect is called by the pool for each new connection. It checks the encoding, and changes the settings
// that Citus needs.
func (p *planner) afterConnect(ctx context.Context, conn *pgx.Conn) error {
	if err := CheckEncoding(conn); err != nil {
		return err
	}
	if p.plain.Load() {
		return nil
	}
	// Below pgx, which would count a round trip of the request that waits for the session.
	results, err := conn.PgConn().Exec(ctx, citusIsLoaded).ReadAll()
	if err != nil {
		return err
	}
	// The server has loaded Citus. The second statement returns a row only if this database has the extension, and
	// then has changed the settings.
	if len(results[0].Rows) > 0 {
		if results, err = conn.PgConn().Exec(ctx, planWithCitus).ReadAll(); err != nil {
			return err
		}
	}
	if len(results[0].Rows) == 0 {
		p.plain.Store(true)
		return nil
	}
	conn.PgConn().CustomData()[citusKey] = true
	return nil
}

// citusIsLoaded returns a row if the server has loaded Citus, for this database or another one. A new session answers
// it in half the time that a look into pg_extension takes.
const citusIsLoaded = `SELECT WHERE current_setting('citus.version', true) IS NOT NULL`

// One connection to each server runs the tasks of a statement one after the other. Citus would open more of them for a
// batch over many accounts and close them at its end, which costs far more than the tasks, and transactions would lock
// rows in any order.
//
// The deadlock prevention of Citus locks whole shards for each statement that changes rows of several. Transactions of
// several such statements then wait for each other although they share no row, and deadlock.
const planWithCitus = `
SELECT set_config('plan_cache_mode', 'auto', false), set_config('citus.max_adaptive_executor_pool_size', '1', false),
  set_config('citus.enable_deadlock_prevention', 'off', false)
FROM pg_extension WHERE extname = 'citus'`
