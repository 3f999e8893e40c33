package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Incoming is the rows of one table on their way in from a file: they are copied into a temporary table of the same
// shape, incoming_TABLE, which has the number of each row's line besides; there they are looked at together, and merged
// by one statement, however many they are.
type Incoming struct {
	Table    string
	Columns  []string // the first is the id, by which a row is the same as one that is there
	Refusals []Refusal

	rows [][]any // the line's number, then a value for each column
	seen map[any]bool
}

// A Refusal is a query for the lines of the temporary table that can't be taken, and why.
type Refusal struct{ Query, Reason string }

// Add adds a line's row: its id and, in the order of Columns, the rest.
func (t *Incoming) Add(l *Line, id any, more ...any) {
	if t.seen == nil {
		t.seen = make(map[any]bool)
	}
	if missing := id == "" || id == (ID{}); !missing && t.seen[id] { // what is missing is told already
		l.Fault("its id stands on an earlier line of the same kind")
	}
	t.seen[id] = true
	t.rows = append(t.rows, append([]any{l.Number, id}, more...))
}

// Len is the number of rows.
func (t *Incoming) Len() int { return len(t.rows) }

// Merge carries out merge, a statement that writes the rows of the temporary table, unless a row is refused. It returns
// how many rows were added or changed.
func (t *Incoming) Merge(ctx context.Context, tx pgx.Tx, merge string) (int64, error) {
	if len(t.rows) == 0 {
		return 0, nil
	}
	if err := t.copy(ctx, tx); err != nil {
		return 0, fmt.Errorf("copying %s: %w", t.Table, err)
	}
	for _, r := range t.Refusals {
		rows, err := tx.Query(ctx, r.Query)
		if err != nil {
			return 0, err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return 0, err
		}
		if len(lines) > 0 {
			return 0, r.of(lines)
		}
	}
	tag, err := tx.Exec(ctx, merge)
	return tag.RowsAffected(), err
}

func (t *Incoming) copy(ctx context.Context, tx pgx.Tx) error {
	incoming := "incoming_" + t.Table
	create := fmt.Sprintf(`CREATE TEMPORARY TABLE %s ON COMMIT DROP AS SELECT 0 AS line, %s FROM %s WITH NO DATA`,
		incoming, strings.Join(t.Columns, ", "), t.Table)
	if _, err := tx.Exec(ctx, create); err != nil {
		return err
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{incoming}, append([]string{"line"}, t.Columns...), pgx.CopyFromRows(t.rows)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `ANALYZE `+incoming)
	return err
}

// of is the refusal of these lines, in the form of ReadLines.
func (r *Refusal) of(lines []int) error {
	var faults []error
	for _, n := range lines {
		faults = append(faults, fmt.Errorf("line %d: %s", n, r.Reason))
	}
	return errors.Join(faults...)
}
