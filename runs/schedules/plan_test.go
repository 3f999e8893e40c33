package schedules_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"aiv/runs/schedules"
	"aiv/store"
	"aiv/store/storetest"
	"aiv/store/task"
)

// TestReadsAreSmall: tasks that find nothing to do, and pages of occurrences, read few rows, however many schedules and
// occurrences there are. The tasks look every 500 ms in each process.
func TestReadsAreSmall(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, &database{pool: storetest.Hot(t)})
	made := s.create(t, change("hourly", schedules.Hourly))
	s.past(t, 1, 2400, "1 hour", 100)
	s.exec(t, `
INSERT INTO schedules SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'name', n))).*
FROM schedules s, generate_series(1, 3000) n`)
	seen := &storetest.Statements{}
	traced := storetest.WithTracer(t, s.pool, seen)
	reads := s.scheduler(traced).Tasks()
	for _, status := range []string{"", "created", "skipped"} {
		for _, after := range []*store.Position{nil, {Time: time.Now().AddDate(0, -1, 0), ID: made.ID}} {
			page := store.Page{Limit: 20, After: after}
			reads = append(reads, task.Task{Name: fmt.Sprintf("page %q %v", status, after), Run: func(ctx context.Context) error {
				return ignore(schedules.Occurrences(ctx, traced, s.account, made.ID, status, page))
			}})
		}
	}
	for _, statistics := range []string{``, `ANALYZE`} {
		s.exec(t, statistics)
		explains := storetest.NewSession(t, s.pool)
		for _, read := range reads {
			must(t, read.Run(t.Context()))
			explained := 0
			for _, statement := range seen.Taken() {
				if !strings.Contains(statement.SQL, "WHERE") { // a setting
					continue
				}
				explained++
				if cost := explains.Explain(t, statement.SQL, statement.Args...); cost.Rows > 200 {
					t.Errorf("%s, statistics %q: %d rows\n%s", read.Name, statistics, cost.Rows, statement.SQL)
				}
			}
			if explained == 0 {
				t.Errorf("no statement of %s was seen", read.Name)
			}
		}
	}
}
