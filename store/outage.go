package store

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// An Outage tracks unreachable servers of a Citus cluster. A read of all accounts needs all servers, so until they are
// back, the statements that look for work name the accounts of the other servers. The work of these accounts goes on.
// For a nil Outage all servers are reachable.
type Outage struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	now  atomic.Pointer[outage]
}

// An outage is what an Outage knows at a time. It does not change.
type outage struct {
	shards   []int64 // on unreachable servers
	accounts []ID    // on the others, sorted; nil: all servers are reachable
}

// NewOutage returns an Outage for the database of a pool. It logs each change.
func NewOutage(pool *pgxpool.Pool, log *slog.Logger) *Outage {
	o := &Outage{pool: pool, log: log}
	o.now.Store(&outage{})
	return o
}

// accounts returns the accounts on reachable servers, sorted; nil: all accounts.
func (o *Outage) accounts() []ID {
	if o == nil {
		return nil
	}
	return o.now.Load().accounts
}

// AmongAccounts is the condition that the account in a column is among the accounts of the parameter p, or that p is
// NULL. Each table of a statement needs it: Citus asks the servers of all shards that one of them leaves in.
func AmongAccounts(column, p string) string {
	return `(` + p + `::uuid[] IS NULL OR ` + column + ` = ANY (` + p + `))`
}

// Reachable is the form on Citus of a statement that looks for work. It has one more parameter: the accounts of the
// reachable servers, or NULL for all.
func (o *Outage) Reachable(sql string) pgx.QueryRewriter { return rewriter{o, sql} }

// A rewriter replaces a statement by sql on Citus, and adds the accounts.
type rewriter struct {
	o   *Outage
	sql string
}

// RewriteQuery implements [pgx.QueryRewriter].
func (s rewriter) RewriteQuery(_ context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	if !IsCitus(conn) {
		return sql, args, nil
	}
	return s.sql, append(slices.Clip(args), s.o.accounts()), nil
}

// Away reports whether an account is on an unreachable server.
func (o *Outage) Away(account ID) bool {
	reachable := o.accounts()
	_, found := slices.BinarySearchFunc(reachable, account, ID.Compare)
	return reachable != nil && !found
}

// Retry calls f, and once more if it has failed because of a server that was not known to be unreachable.
func (o *Outage) Retry(ctx context.Context, f func() error) error {
	if o == nil {
		return f()
	}
	before := o.now.Load()
	err := f()
	// If the same servers were known to be unreachable, f has left their accounts out already, and a second try would
	// not help.
	if LostServer(err) && o.find(ctx) == nil && !slices.Equal(before.shards, o.now.Load().shards) {
		return f()
	}
	return err
}

// Update finds out whether unreachable servers are back, and which accounts have been created. It is to be called every
// second.
func (o *Outage) Update(ctx context.Context) error {
	// While no server is known to be unreachable, only Retry looks for one.
	if o.accounts() == nil {
		return nil
	}
	return o.find(ctx)
}

// find finds out which servers are unreachable.
func (o *Outage) find(ctx context.Context) error {
	found := &outage{}
	if err := o.pool.QueryRow(ctx, lostShards).Scan(&found.shards); err != nil {
		return err
	}
	if len(found.shards) > 0 {
		if err := o.pool.QueryRow(ctx, accountsBeyond, found.shards).Scan(&found.accounts); err != nil {
			return err
		}
		slices.SortFunc(found.accounts, ID.Compare)
	}
	if before := o.now.Swap(found); !slices.Equal(before.shards, found.shards) {
		if len(found.shards) > 0 {
			o.log.Warn("servers of the cluster are unreachable; their accounts wait for jobs, schedules, webhooks and recounts",
				"shards", len(found.shards))
		} else {
			o.log.Info("all servers of the cluster are reachable again")
		}
	}
	return nil
}

const (
	// lostShards returns the shards of measurement_runs on servers that cannot be reached. The other tables by
	// account are placed in the same way.
	lostShards = `
WITH lost AS MATERIALIZED (
  SELECT groupid FROM pg_dist_node WHERE isactive AND shouldhaveshards AND NOT citus_check_connection_to_node(nodename, nodeport)
)
SELECT COALESCE(array_agg(s.shardid ORDER BY s.shardid), '{}') FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
WHERE s.logicalrelid = 'measurement_runs'::regclass AND p.groupid IN (SELECT groupid FROM lost)`

	// accountsBeyond returns the accounts whose rows are in other shards than $1.
	accountsBeyond = `
SELECT COALESCE(array_agg(id), '{}') FROM accounts WHERE get_shard_id_for_distribution_column('measurement_runs', id) <> ALL ($1::bigint[])`
)
