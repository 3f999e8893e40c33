package jobs

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// An outage is what a Dispatcher on Citus knows of unreachable servers. A read of all accounts needs all servers, so until they are
// back, the statements that look for jobs name the accounts of the other servers. Their jobs are handed out as before.
type outage struct {
	shards   []int64    // on unreachable servers
	accounts []store.ID // on the others; nil: all servers are reachable
}

// among is the condition that the account of a row is among those of the parameter p, or that p is NULL.
func among(p string) string { return `(` + p + `::uuid[] IS NULL OR account_id = ANY (` + p + `))` }

// reachable is the shape on Citus of a statement that looks for jobs. It has one more parameter: the accounts of the reachable
// servers, or NULL for all.
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

// foundLost reports whether err is due to a server that was not known to be unreachable when the work began, so that a repetition
// may succeed.
func (d *Dispatcher) foundLost(ctx context.Context, began *outage, err error) bool {
	return store.LostServer(err) && d.findLost(ctx) == nil && !slices.Equal(began.shards, d.outage.Load().shards)
}

// findLost finds out which servers are unreachable.
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
	if before := d.outage.Swap(o); !slices.Equal(before.shards, o.shards) {
		d.cfg.Log.Warn("the shards on unreachable servers of the cluster have changed; jobs of their accounts are not handed out", "shards", len(o.shards))
	}
	return nil
}

// updateOutage finds out whether unreachable servers are back, and which accounts have been created.
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
