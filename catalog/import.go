package catalog

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/jsonl"
)

// Admin changes the catalog for an operator. Each change adds a row to audit_log in the same transaction.
type Admin struct {
	Pool  *pgxpool.Pool
	Actor string // the operator, for audit_log
}

// Imported counts the lines of each kind in an imported file.
type Imported struct {
	Providers, Methodologies, Models, Questions int
}

// Import reads a JSON Lines file of providers, methodologies, models and questions, in any order. It adds rows and
// changes existing ones to match the file. If any line is invalid, it changes nothing and its error lists the lines.
// Importing a file again changes nothing. progress, which may be nil, is called with the number of lines read so far.
func (a *Admin) Import(ctx context.Context, file io.Reader, progress func(lines int)) (Imported, error) {
	in := newIncoming()
	if err := jsonl.Read(file, progress, in.add); err != nil {
		return Imported{}, err
	}
	n := Imported{in.providers.Len(), in.methodologies.Len(), in.models.Len(), in.questions.Len()}
	err := store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error {
		// Copy fills temporary tables before any lock is taken, because it may take long. Merge then checks and writes
		// the rows.
		if err := jsonl.Copy(ctx, tx, &in.providers, &in.methodologies, &in.models, &in.questions); err != nil {
			return err
		}
		// Imports run one at a time: concurrent ones would not see the rows that the other adds.
		if _, err := tx.Exec(ctx, lockCatalog); err != nil {
			return err
		}
		var changed int64
		for _, t := range []struct {
			table  *jsonl.Table
			upsert string
		}{
			{&in.providers, upsertProviders}, // before models, which refer to them
			{&in.methodologies, upsertMethodologies},
			{&in.models, upsertModels},
			{&in.questions, upsertShared},
		} {
			rows, err := t.table.Merge(ctx, tx, t.upsert)
			if err != nil {
				return err
			}
			changed += rows
		}
		if err := checkMethodologies(ctx, tx); err != nil {
			return err
		}
		if in.questions.Len() > 0 { // last, because it locks rows that requests wait for
			rows, err := writeOwn(ctx, tx)
			if err != nil {
				return err
			}
			changed += rows
		}
		// Without a change the revision stays, and no process reads the catalog again.
		if changed == 0 {
			return nil
		}
		return a.record(ctx, tx, "catalog.import", "catalog", map[string]any{
			"providers": n.Providers, "methodologies": n.Methodologies, "models": n.Models, "questions": n.Questions, "rows_changed": changed,
		})
	})
	if err != nil {
		return Imported{}, err
	}
	return n, nil
}

// writeOwn writes the own questions of a file and their tags, and returns how many it has changed. It locks the
// accounts, so that no request adds an equal question at the same time.
func writeOwn(ctx context.Context, tx pgx.Tx) (int64, error) {
	accounts, err := store.Collect(ctx, tx, pgx.RowTo[store.ID], incomingAccounts)
	if err != nil {
		return 0, err
	}
	for _, account := range accounts {
		if _, err := tx.Exec(ctx, lockOwn, account); err != nil {
			return 0, err
		}
	}
	// Questions are written before their tags, which refer to them.
	rows, err := tx.Query(ctx, upsertOwn)
	if err != nil {
		return 0, err
	}
	written := make(map[store.ID][]string) // ids by account
	var account store.ID
	var id string
	tag, err := pgx.ForEachRow(rows, []any{&account, &id}, func() error {
		written[account] = append(written[account], id)
		return nil
	})
	for account, ids := range written {
		if err == nil {
			err = writeOwnTags(ctx, tx, account, ids)
		}
	}
	if err != nil {
		return 0, err
	}
	return tag.RowsAffected(), store.LockKept(ctx, tx, accounts)
}

// record increases the revision and writes audit_log. Every transaction of an operator that changes the catalog calls
// it last.
func (a *Admin) record(ctx context.Context, tx pgx.Tx, action, subject string, detail map[string]any) error {
	if _, err := tx.Exec(ctx, nextRevision); err != nil {
		return err
	}
	return store.Audit(ctx, tx, store.Change{Actor: a.Actor, Action: action, Subject: subject, Detail: detail})
}

// checkMethodologies requires that at most one active methodology covers each measurement type.
func checkMethodologies(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, coveredTwice)
	if err != nil {
		return err
	}
	types, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(types) > 0 {
		err = fmt.Errorf("more than one active methodology covers %s; retire the others in the same file", strings.Join(types, ", "))
	}
	return err
}
