package webhookstest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// Backlogs are databases that differ in how many deliveries are pending and in the planner's statistics.
type Backlogs struct{ few, many, misjudged *Backlog }

// NewBacklogs returns Backlogs. It skips the test on Citus.
func NewBacklogs(t *testing.T) *Backlogs {
	t.Helper()
	SkipOnCitus(t)
	b := &Backlogs{newBacklog(t, 400), newBacklog(t, 4000), newBacklog(t, 4000)}
	for _, table := range []string{"events", "webhook_deliveries"} {
		b.misjudged.db.Exec(t, `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`)
		// As a VACUUM leaves them before the first events after a month without.
		b.misjudged.db.Exec(t, `SET allow_system_table_mods = on; UPDATE pg_class SET relpages = 1000, reltuples = 1 WHERE oid = '`+table+`'::regclass`)
	}
	return b
}

// CostNothing checks that a statement touches about as many rows and pages where few deliveries are pending as where many are: due
// deliveries of its own endpoint, deliveries of another endpoint that wait for a retry, and those of many other accounts. The same
// holds where the statistics are from a time when the tables were nearly empty.
func (b *Backlogs) CostNothing(t *testing.T, name, sql string, args func(*Backlog) []any) {
	t.Helper()
	fewRows, fewPages := b.few.db.Touched(t, sql, args(b.few)...)
	for _, large := range []struct {
		what string
		*Backlog
	}{{"a large backlog", b.many}, {"a large backlog and statistics of empty tables", b.misjudged}} {
		rows, pages := large.db.Touched(t, sql, args(large.Backlog)...)
		if rows > fewRows+fewRows/10 || pages > 2*fewPages+20 { // a larger index has another level
			t.Errorf("%s: %d rows and %d pages, %d rows and %d pages with %s", name, fewRows, fewPages, rows, pages, large.what)
		}
	}
}

// A Backlog is a database with pending deliveries, as many that are due as that wait for a retry.
type Backlog struct {
	db             *DB
	Account, Owner store.ID
	Due, Waiting   store.ID   // endpoints
	Events         []store.ID // the first deliveries that are due
	Position       time.Time  // of the last of them
}

func newBacklog(t *testing.T, n int) *Backlog {
	t.Helper()
	db := New(t)
	b := &Backlog{db: db, Account: db.NewAccount(t), Owner: store.NewID(), Due: store.NewID(), Waiting: store.NewID()}
	db.Exec(t, `
INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events)
VALUES ($1, $2, 1, 'https://due.example/', '', '{*}'), ($1, $3, 2, 'https://waiting.example/', '', '{*}')`, b.Account, b.Due, b.Waiting)
	db.Exec(t, `
WITH e AS (
  INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT $1, md5('e' || n)::uuid, 'run.completed', md5('s' || n)::uuid, '{}' FROM generate_series(1, $4::integer) n RETURNING id
)
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, next_attempt_at, requested)
SELECT $1, id, endpoint, now() + shift, false FROM e, (VALUES ($2::uuid, interval '-1 hour'), ($3, interval '1 hour')) x (endpoint, shift)`,
		b.Account, b.Due, b.Waiting, n)
	db.Exec(t, `
WITH a AS (INSERT INTO accounts (id, name, plan_code) SELECT md5('a' || n)::uuid, 'a', 'p' FROM generate_series(1, $1::integer) n RETURNING id)
INSERT INTO webhook_queues (account_id, wake_at) SELECT id, now() - interval '1 minute' FROM a`, n)
	db.Exec(t, `INSERT INTO webhook_queues (account_id, owner, wake_at) VALUES ($1, $2, now() - interval '1 hour')`, b.Account, b.Owner)
	for _, table := range []string{"events", "webhook_deliveries", "webhook_queues", "webhook_endpoints"} {
		db.Exec(t, `VACUUM ANALYZE `+table)
	}
	rows, err := db.Pool.Query(t.Context(), `
SELECT event_id FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 ORDER BY next_attempt_at, event_id LIMIT 50`, b.Account, b.Due)
	if err != nil {
		t.Fatal(err)
	}
	if b.Events, err = pgx.CollectRows(rows, pgx.RowTo[store.ID]); err != nil {
		t.Fatal(err)
	}
	if err := db.Pool.QueryRow(t.Context(), `SELECT min(next_attempt_at) FROM webhook_deliveries`).Scan(&b.Position); err != nil {
		t.Fatal(err)
	}
	return b
}

// Accounts returns the account alone.
func (b *Backlog) Accounts() []store.ID { return []store.ID{b.Account} }

// Tenfold repeats an id.
func (b *Backlog) Tenfold(id store.ID) []store.ID { return slices.Repeat([]store.ID{id}, 10) }

// Touched executes a statement, undoes it, and returns how many rows its scans and how many pages it touched.
func (db *DB) Touched(t *testing.T, sql string, args ...any) (rows, pages int) {
	t.Helper()
	for range 2 { // the first time includes what pruning reads
		var text []byte
		tx, err := db.Pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&text)
		tx.Rollback(t.Context())
		var plans []struct{ Plan planNode }
		if err == nil {
			err = json.Unmarshal(text, &plans)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
		rows, pages = plans[0].Plan.touched(), plans[0].Plan.Hit+plans[0].Plan.Read
	}
	return rows, pages
}

type planNode struct {
	Type     string     `json:"Node Type"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Filtered float64    `json:"Rows Removed by Filter"`
	Hit      int        `json:"Shared Hit Blocks"`
	Read     int        `json:"Shared Read Blocks"`
	Plans    []planNode `json:"Plans"`
}

func (n *planNode) touched() (rows int) {
	if strings.Contains(n.Type, "Scan") {
		rows = int((n.Rows + n.Filtered) * n.Loops)
	}
	for i := range n.Plans {
		rows += n.Plans[i].touched()
	}
	return rows
}
