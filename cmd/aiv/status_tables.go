package main

import (
	"context"
	"fmt"

	"aiv/store/schema"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A tableStatus is where a table of a database with Citus is.
type tableStatus struct {
	Name      string           `json:"name"`
	Placement schema.Placement `json:"placement"`
	Wanted    schema.Placement `json:"wanted"` // by aiv migrate -distribute
	Bytes     int64            `json:"bytes"`  // on all servers
}

// readTables returns where the tables are, or nothing in a database without Citus.
func readTables(ctx context.Context, pool *pgxpool.Pool) (tables []tableStatus, err error) {
	if found, err := schema.HasCitus(ctx, pool); err != nil || !found {
		return nil, err
	}
	placements, err := schema.Placements(ctx, pool)
	for _, p := range placements {
		tables = append(tables, tableStatus{p.Table, p.Is, p.Want, p.Size})
	}
	return tables, err
}

// tablesText counts the tables of each placement, and those that are not where they should be.
func tablesText(tables []tableStatus) string {
	counts := make(map[schema.Placement]int)
	misplaced := 0
	for _, t := range tables {
		counts[t.Placement]++
		if t.Placement != t.Wanted {
			misplaced++
		}
	}
	text := fmt.Sprintf("%d by account, %d on every server, %d on the coordinator", counts[schema.ByAccount], counts[schema.Reference],
		counts[schema.Coordinator]+counts[schema.Local])
	if misplaced > 0 {
		text += fmt.Sprintf("; %d NOT DISTRIBUTED (aiv migrate -distribute)", misplaced)
	}
	return text
}
