package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
)

// verification is what `aiv verify` prints.
type verification struct {
	Invariants int         `json:"invariants"`
	Violations []violation `json:"violations"`
}

// A violation is an invariant that does not hold. Count is the number of all rows that break it.
type violation struct {
	Invariant string   `json:"invariant"`
	Doc       string   `json:"doc"`
	Count     int      `json:"count"`
	Rows      []string `json:"rows"` // the first of them
}

// listInvariants is the end of the help of `aiv verify`.
func listInvariants() string {
	var b strings.Builder
	b.WriteString("\nInvariants:\n")
	for _, i := range capability.Invariants() {
		fmt.Fprintf(&b, "  %s: %s\n", i.Name, i.Doc)
	}
	return b.String()
}

// verify prints all violations before it fails, so that the exit code and the report can both be used.
func verify(ctx context.Context, c *call) error {
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		all := capability.Invariants()
		found, err := store.Verify(ctx, pool, all)
		if err != nil {
			return err
		}
		result := verification{Invariants: len(all), Violations: []violation{}}
		for _, v := range found {
			for i, row := range v.Rows {
				// Invariants name rows by UUID; operators and customers know ids.
				v.Rows[i] = capability.PublicIDs(row)
			}
			result.Violations = append(result.Violations, violation{v.Invariant.Name, v.Invariant.Doc, v.Count, v.Rows})
		}
		if err := c.Print(result, result.print); err != nil {
			return err
		}
		if len(found) > 0 {
			return errors.New("the database breaks an invariant")
		}
		return nil
	})
}

// print lists violations by invariant, with up to 20 of their rows.
func (r verification) print(w io.Writer) {
	for _, v := range r.Violations {
		fmt.Fprintf(w, "%s: %s. %s\n", v.Invariant, cli.Count(v.Count, "row", "rows"), v.Doc)
		for _, row := range v.Rows {
			fmt.Fprintf(w, "  %s\n", row)
		}
	}
	fmt.Fprintf(w, "%d of %d invariants hold.\n", r.Invariants-len(r.Violations), r.Invariants)
}
