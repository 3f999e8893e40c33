//go:build citus

package gateway

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/store/storetest"
)

// TestOneShard plays the golden files on a Citus cluster and explains each statement that aiv serve has sent. Each task
// of a plan is for one shard, and each statement is about one account, so no plan has more than one task. Rows that a
// statement inserts go to the shard of their account; Citus shows no tasks for these.
func TestOneShard(t *testing.T) {
	if !storetest.OnCitus() {
		t.Fatal("-citus is missing: the URL of a coordinator")
	}
	f := newFixture(t)
	sent := &storetest.Statements{}
	f.serves = storetest.WithTracer(t, f.pool, sent)
	address := f.target(t)
	f.serveWorkers(t, address)
	for _, file := range goldenFiles(t) {
		if s := parseStory(t, readGolden(t, file)); s.fault == "" {
			address.play(t, s)
		}
	}
	explained, tasks := 0, 0
	seen := make(map[string]bool)
	for _, s := range sent.Taken() {
		sql := s.SQL
		first, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
		if seen[sql] || !strings.Contains(" SELECT INSERT UPDATE DELETE WITH ", " "+strings.ToUpper(first)+" ") {
			continue
		}
		seen[sql] = true
		rows, _ := f.pool.Query(t.Context(), "EXPLAIN (COSTS OFF) "+sql, s.Args...) // rows has the error, too
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			if !strings.Contains(sql, "INSERT INTO") { // some of these Citus can only execute
				t.Errorf("%s: %v", sql, err)
			}
			continue
		}
		explained++
		for _, m := range taskCount.FindAllStringSubmatch(strings.Join(lines, "\n"), -1) {
			if tasks++; m[1] != "1" {
				t.Errorf("%s tasks, want one for the account's shard:\n%s\n%s", m[1], sql, strings.Join(lines, "\n"))
			}
		}
	}
	if explained < 50 || tasks < 30 {
		t.Errorf("only %d statements were explained, with %d tasks", explained, tasks)
	}
}

var taskCount = regexp.MustCompile(`Task Count: (\d+)`)
