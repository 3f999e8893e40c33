package jobs

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// An outage is what a Dispatcher on Citus knows of servers that are away. A read of all accounts needs all servers, so the statements
// that look for jobs name the accounts of the other servers meanwhile. Their jobs are handed out as before.
type outage struct {
	shards   []int64    // on servers that are away
	accounts []store.ID // on the others; nil: all servers are there
}

// among is the condition that the account of a row is among those of the parameter p, or that p is NULL.
func among(p string) string { return `(` + p + `::uuid[] IS NULL OR account_id = ANY (` + p + `))` }

// reachable is the shape on Citus of a statement that looks for jobs. It has one more parameter: the accounts of the servers that
// are there, or NULL.
func (d *Dispatcher) reachable(sql string) pgx.QueryRewriter { return reachable{d, sql} }

type reachable struct {
	d   *Dispatcher
	sql string
}

// RewriteQuery implements [pgx.QueryRewriter].
func (s reachable) RewriteQuery(_ context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	if !store.IsCitus(conn) {
		return sql, args, nil
	}
	return s.sql, append(slices.Clip(args), s.d.outage.Load().accounts), nil
}

// foundLost reports whether err is due to a server that was not known to be away, so that a repetition may succeed.
func (d *Dispatcher) foundLost(ctx context.Context, err error) bool {
	if !store.LostServer(err) {
		return false
	}
	before := d.outage.Load().shards
	return d.findLost(ctx) == nil && !slices.Equal(before, d.outage.Load().shards)
}

// findLost finds out which servers are away.
func (d *Dispatcher) findLost(ctx context.Context) error {
	o := &outage{}
	if err := d.cfg.Pool.QueryRow(ctx, lostShards).Scan(&o.shards); err != nil {
		return err
	}
	if len(o.shards) > 0 {
		if err := d.cfg.Pool.QueryRow(ctx, accountsBeyond, o.shards).Scan(&o.accounts); err != nil {
			return err
		}
	}
	d.outage.Store(o)
	return nil
}

// updateOutage finds out whether servers that were away are back, and which accounts have been made.
func (d *Dispatcher) updateOutage(ctx context.Context) error {
	if d.outage.Load().accounts == nil {
		return nil
	}
	return d.findLost(ctx)
}

const (
	lostShards = `
WITH lost AS MATERIALIZED (
  SELECT groupid FROM pg_dist_node WHERE isactive AND shouldhaveshards AND NOT citus_check_connection_to_node(nodename, nodeport)
)
SELECT COALESCE(array_agg(s.shardid ORDER BY s.shardid), '{}') FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
WHERE s.logicalrelid = 'measurement_runs'::regclass AND p.groupid IN (SELECT groupid FROM lost)`

	accountsBeyond = `
SELECT COALESCE(array_agg(id), '{}') FROM accounts WHERE get_shard_id_for_distribution_column('measurement_runs', id) <> ALL ($1::bigint[])`
)
