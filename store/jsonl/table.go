package jsonl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A Table collects the rows of one table from a file. Merge copies them into the temporary table incoming_NAME, which
// has the same columns and the line's number, checks them together there, and merges them by one statement: the number
// of round trips does not depend on the number of rows.
type Table struct {
	Name    string
	Columns []string // the first is the id, which identifies a row that exists already
	Checks  []Check

	rows [][]any // the line's number, then a value for each column
	seen map[any]int
}

// A Check finds rows that cannot be merged.
type Check struct {
	Query  string // SELECT i.line FROM … WHERE …, from the temporary table i, or a UNION of such
	Reason string // error text for these lines

	// CitusTables are common table expressions that Query needs in a database with Citus, where temporary tables cannot
	// be joined with distributed ones.
	CitusTables string
}

// Add adds a line's row: its id and the values of the other columns, in the order of Columns.
func (t *Table) Add(l *Line, id any, values ...any) {
	if t.seen == nil {
		t.seen = make(map[any]int)
	}
	first, duplicate := t.seen[id]
	switch missing := id == "" || id == (store.ID{}); {
	// Lines whose id could not be read are not duplicates of each other.
	case missing: // an error of the line already
	case duplicate:
		l.Errorf("duplicate id (first on line %d)", first)
	default:
		t.seen[id] = l.Number
	}
	// The row of a line with an error is added, too. Read returns the error, so it is never copied.
	t.rows = append(t.rows, append([]any{l.Number, id}, values...))
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Merge runs the checks and then merge, a statement that writes rows of the temporary table and returns a row for each:
// Citus also counts the rows that an upsert leaves unchanged. Merge returns the number of rows that were added or
// changed. [Copy] has made the temporary table.
func (t *Table) Merge(ctx context.Context, tx pgx.Tx, merge string) (int64, error) {
	if len(t.rows) == 0 {
		return 0, nil
	}
	for _, c := range t.Checks {
		query := c.Query + firstLines
		lines, err := store.Collect(ctx, tx, pgx.RowTo[int], query, store.OnCitus(c.CitusTables+query))
		if err != nil {
			return 0, err
		}
		// Only the first reason is reported.
		if len(lines) > 0 {
			return 0, c.failed(lines)
		}
	}
	tag, err := tx.Exec(ctx, merge)
	return tag.RowsAffected(), err
}

// firstLines bounds the lines that a Check reports.
const firstLines = ` ORDER BY line LIMIT 20`

// Copy copies the rows of tables to temporary tables of the transaction. It takes as long as the client takes to send
// them, so a transaction that locks rows or tables calls it first.
func Copy(ctx context.Context, tx pgx.Tx, tables ...*Table) error {
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		if err := t.copy(ctx, tx); err != nil {
			return fmt.Errorf("copying %s: %w", t.Name, err)
		}
	}
	return nil
}

// copy makes the temporary table with the types of the table's columns, fills it, and lets the planner know its size.
func (t *Table) copy(ctx context.Context, tx pgx.Tx) error {
	incoming := "incoming_" + t.Name
	// The constant 0 makes line an integer.
	create := fmt.Sprintf(`CREATE TEMPORARY TABLE %s ON COMMIT DROP AS SELECT 0 AS line, %s FROM %s WITH NO DATA`,
		incoming, strings.Join(t.Columns, ", "), t.Name)
	if _, err := tx.Exec(ctx, create); err != nil {
		return err
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{incoming}, append([]string{"line"}, t.Columns...), pgx.CopyFromRows(t.rows)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `ANALYZE `+incoming)
	return err
}

// failed returns the error of these lines in the format of Read.
func (c *Check) failed(lines []int) error {
	var errs []error
	for _, n := range lines {
		errs = append(errs, fmt.Errorf("line %d: %s", n, c.Reason))
	}
	return errors.Join(errs...)
}
