package schema

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// EraseByID deletes up to eraseStep rows in one transaction.
const eraseStep = 500

// EraseByID is an [EraseFunc] for a table whose key is (account_id, id). It deletes the rows in small steps.
func EraseByID(ctx context.Context, pool *pgxpool.Pool, table string, account store.ID) (total int64, err error) {
	table = pgx.Identifier{table}.Sanitize()
	sql := `
DELETE FROM ` + table + ` WHERE account_id = $1 AND id = ANY (
  ARRAY(SELECT id FROM ` + table + ` WHERE account_id = $1 ORDER BY account_id, id LIMIT $2))`
	// A step that deletes fewer rows is the last one.
	for n := int64(eraseStep); n == eraseStep; total += n {
		err := store.Step(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, sql, account, eraseStep)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// EraseAtOnce is an [EraseFunc] for a table of which an account has few rows. It deletes them in one transaction.
func EraseAtOnce(ctx context.Context, pool *pgxpool.Pool, table string, account store.ID) (rows int64, err error) {
	err = store.Step(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM `+pgx.Identifier{table}.Sanitize()+` WHERE account_id = $1`, account)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// PurgeRows is a [PurgeFunc] that deletes the rows with the run_id of a run.
func PurgeRows(ctx context.Context, tx pgx.Tx, table string, account store.ID, runs []store.ID) error {
	table = pgx.Identifier{table}.Sanitize()
	_, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE account_id = $1 AND run_id = ANY ($2)`, account, runs)
	return err
}

// DetachRuns is a [PurgeFunc] that sets the run_id of a run to NULL.
func DetachRuns(ctx context.Context, tx pgx.Tx, table string, account store.ID, runs []store.ID) error {
	table = pgx.Identifier{table}.Sanitize()
	_, err := tx.Exec(ctx, `UPDATE `+table+` SET run_id = NULL WHERE account_id = $1 AND run_id = ANY ($2)`, account, runs)
	return err
}
