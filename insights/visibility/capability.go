package visibility

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/schema"
)

// Capability is what this package owns. aiv dispatch writes facts; aiv serve reads them. The invariants are methods of
// [Counter].
var Capability = schema.Capability{
	Name: "visibility",
	Tables: []schema.Table{
		// Facts have no Erase: deleting the runs of an account deletes them.
		{Name: "visibility_facts", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select}, Dispatch: all,
			Purge: schema.Purge{Delete: schema.PurgeRows}},
		{Name: "visibility_backlog", Placement: schema.ByAccount, Dispatch: all, Purge: schema.Purge{Delete: schema.PurgeRows}},
		{Name: "visibility_recounts", Placement: schema.ByAccount, Serve: schema.Privileges{schema.Select},
			Dispatch: schema.Privileges{schema.Select, schema.Insert, schema.Update}, Erase: schema.Erasure{Last: eraseRecounts}},
	},
}

// eraseRecounts waits for the transactions that are writing the table: one may have read the revision of the account
// before the erasure deleted it. Later transactions find no revision.
func eraseRecounts(ctx context.Context, pool *pgxpool.Pool, table string, account store.ID) (rows int64, err error) {
	err = store.Step(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `LOCK TABLE visibility_recounts IN SHARE MODE`)
		return err
	})
	if err != nil {
		return 0, err
	}
	return schema.EraseAtOnce(ctx, pool, table, account)
}

var all = schema.Privileges{schema.Select, schema.Insert, schema.Update, schema.Delete}
