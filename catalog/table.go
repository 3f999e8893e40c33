package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// table is the rows of one kind on their way in: they are copied into a temporary table of the same shape, looked at
// together, and merged by one statement, however many they are.
type table struct {
	name     string
	columns  []string
	refusals []refusal

	rows [][]any // the line's number, then a value for each column
	seen map[string]bool
}

// refusal is a query for the lines that can't be taken, and why.
type refusal struct{ query, reason string }

func (t *table) add(l *store.Line, id string, more ...any) {
	if t.seen == nil {
		t.seen = make(map[string]bool)
	}
	if t.seen[id] {
		l.Fault("its id stands on an earlier line of the same kind")
	}
	t.seen[id] = true
	t.rows = append(t.rows, append([]any{l.Number, id}, more...))
}

// write returns how many rows were added or changed.
func (t *table) write(ctx context.Context, tx pgx.Tx, merge string) (int64, error) {
	if len(t.rows) == 0 {
		return 0, nil
	}
	incoming := "incoming_" + t.name
	create := fmt.Sprintf(`CREATE TEMPORARY TABLE %s ON COMMIT DROP AS SELECT 0 AS line, %s FROM %s WITH NO DATA`,
		incoming, strings.Join(t.columns, ", "), t.name)
	if _, err := tx.Exec(ctx, create); err != nil {
		return 0, err
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{incoming}, append([]string{"line"}, t.columns...), pgx.CopyFromRows(t.rows)); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `ANALYZE `+incoming); err != nil {
		return 0, err
	}
	for _, r := range t.refusals {
		rows, err := tx.Query(ctx, r.query)
		if err != nil {
			return 0, err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return 0, err
		}
		if len(lines) > 0 {
			return 0, refuse(lines, r.reason)
		}
	}
	tag, err := tx.Exec(ctx, merge)
	return tag.RowsAffected(), err
}

func refuse(lines []int, reason string) error {
	var b strings.Builder
	for i, n := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "line %d: %s", n, reason)
	}
	return fmt.Errorf("%s", b.String())
}
