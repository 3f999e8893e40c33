package webhooks

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
	"aiv/store/storetest"
)

// TestPlans: statements that run for each delivery find their rows by index, also when they were planned on empty tables.
func TestPlans(t *testing.T) {
	t.Parallel()
	skipOnCitus(t)
	f := newFixture(t)
	account, endpoint := f.account(t), store.NewID()
	ids := []store.ID{account}
	for _, test := range []struct {
		sql, index string
		args       []any
	}{
		{dueAccounts, "webhook_queues_wake", []any{10}},
		{claimAccounts, "webhook_queues_pkey", []any{ids, account, 1.0}},
		{readDue, "webhook_deliveries_due", []any{ids, ids, []string{"-infinity"}, ids, []int{5}}},
		{readEvents, "events_pkey", []any{ids, ids}},
		{lockDeliveries, "webhook_deliveries_pkey", []any{ids, ids, ids, []int{0}, []int{0}}},
		{writeOutcomes, "webhook_deliveries_pkey", []any{ids, ids, ids, []int{0}, []int{0}, []string{"failed"}, []int{500}, []string{"status"}, []float64{1}}},
		{oldEvents, "events_time", []any{time.Now(), 10}},
		{deleteEvents, "events_pkey", []any{ids, ids}},
		{countRequested, "webhook_deliveries_requested", []any{account, endpoint, endpoint}},
	} {
		rows, err := f.pool.Query(t.Context(), "EXPLAIN "+test.sql, test.args...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", test.sql, err)
		}
		plan := strings.Join(lines, "\n")
		if !strings.Contains(plan, test.index) || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\nis planned without %s:\n%s", test.sql, test.index, plan)
		}
	}
}

// skipOnCitus skips a test of PostgreSQL's plans. Citus has other statements. That these read only the servers of their accounts is
// shown by TestFaultCitusWebhooks in cmd/aiv/e2e.
func skipOnCitus(t *testing.T) {
	t.Helper()
	if storetest.OnCitus() {
		t.Skip("about plans of PostgreSQL")
	}
}

// TestBacklogCostsNothing: a delivery touches about as many rows and pages where few deliveries are pending as where many are: due
// deliveries of its own endpoint, deliveries of another endpoint that wait for a retry, and those of many other accounts. The same
// holds where the statistics are from a time when the tables were nearly empty.
func TestBacklogCostsNothing(t *testing.T) {
	t.Parallel()
	skipOnCitus(t)
	few, many, misjudged := newBacklog(t, 1000), newBacklog(t, 10_000), newBacklog(t, 10_000)
	for _, table := range []string{"events", "webhook_deliveries"} {
		misjudged.exec(t, `ALTER TABLE `+table+` SET (autovacuum_enabled = false)`)
		// As a VACUUM leaves them before the first events after a month without.
		misjudged.exec(t, `SET allow_system_table_mods = on; UPDATE pg_class SET relpages = 1000, reltuples = 1 WHERE oid = '`+table+`'::regclass`)
	}
	for _, test := range []struct {
		name, sql string
		args      func(b *backlog) []any
	}{
		{"record", recordEvents, func(b *backlog) []any {
			args := recordArgs([]Cause{{b.account, store.NewID(), RunCompleted, store.NewID(), []byte("{}")}})
			return args
		}},
		{"due accounts", dueAccounts, func(*backlog) []any { return []any{10} }},
		{"claim", claimAccounts, func(b *backlog) []any { return []any{b.accounts(), b.owner, 45.0} }},
		{"renew", renewAccounts, func(b *backlog) []any { return []any{b.accounts(), b.owner, 45.0} }},
		{"endpoints", readAccounts, func(b *backlog) []any { return []any{b.accounts(), b.owner} }},
		{"due from the first", readDue, func(b *backlog) []any {
			return []any{[]store.ID{b.account, b.account}, []store.ID{b.due, b.waiting}, []string{"-infinity", "-infinity"}, make([]store.ID, 2), []int{10, 10}}
		}},
		{"due after a position", readDue, func(b *backlog) []any {
			return []any{b.accounts(), []store.ID{b.due}, []time.Time{b.position}, []store.ID{b.events[49]}, []int{10}}
		}},
		{"events", readEvents, func(b *backlog) []any { return []any{b.tenfold(b.account), b.events[:10]} }},
		{"event", getEvent, func(b *backlog) []any { return []any{b.account, b.events[0]} }},
		{"lock", lockDeliveries, func(b *backlog) []any {
			return []any{b.tenfold(b.account), b.events[:10], b.tenfold(b.due), make([]int, 10), make([]int, 10)}
		}},
		{"outcomes", writeOutcomes, func(b *backlog) []any {
			statuses, zeros, codes := make([]string, 10), make([]int, 10), make([]int, 10)
			for i := range statuses {
				statuses[i], codes[i] = "delivered", 200
			}
			return []any{b.tenfold(b.account), b.events[:10], b.tenfold(b.due), zeros, zeros, statuses, codes, make([]string, 10), make([]float64, 10)}
		}},
		{"health", writeHealth, func(b *backlog) []any {
			return []any{b.accounts(), []store.ID{b.due}, []string{"https://due.example/"}, []bool{false}, []bool{false}, failingPeriod.Seconds()}
		}},
		{"release", releaseAccounts, func(b *backlog) []any { return []any{b.accounts(), []int{0}, []time.Time{time.Now()}, b.owner} }},
		{"yield", yieldAccounts, func(b *backlog) []any { return []any{b.accounts(), b.owner} }},
		{"tests and resends", countRequested, func(b *backlog) []any { return []any{b.account, b.due, b.events[0]} }},
		{"list", listDeliveries + ` WHERE d.account_id = $1 AND d.endpoint_id = $2 ORDER BY d.created_at DESC, d.event_id DESC LIMIT 10`, func(b *backlog) []any { return []any{b.account, b.due} }},
		{"resend", requestDelivery, func(b *backlog) []any { return []any{b.account, b.events[0], b.due} }},
		{"metrics", readBacklog, func(*backlog) []any { return []any{10, 50} }},
		{"purge", oldEvents, func(*backlog) []any { return []any{time.Now().Add(-Retention), 10} }},
	} {
		fewRows, fewPages := few.explain(t, test.sql, test.args(few))
		for _, large := range []struct {
			what string
			*backlog
		}{{"a large backlog", many}, {"a large backlog and statistics of empty tables", misjudged}} {
			rows, pages := large.explain(t, test.sql, test.args(large.backlog))
			if rows > fewRows+fewRows/10 || pages > 2*fewPages+20 { // a larger index has another level
				t.Errorf("%s: %d rows and %d pages, %d rows and %d pages with %s", test.name, fewRows, fewPages, rows, pages, large.what)
			}
		}
	}
}

// A backlog is a database with pending deliveries, as many that are due as that wait for a retry.
type backlog struct {
	*fixture
	account, owner store.ID
	due, waiting   store.ID   // endpoints
	events         []store.ID // the first deliveries that are due
	position       time.Time  // of the last of them
}

func newBacklog(t *testing.T, n int) *backlog {
	t.Helper()
	b := &backlog{fixture: newFixture(t), owner: store.NewID()}
	b.account = b.fixture.account(t)
	for _, e := range []struct {
		id  *store.ID
		url string
	}{{&b.due, "https://due.example/"}, {&b.waiting, "https://waiting.example/"}} {
		*e.id = b.endpoint(t, b.account, e.url).ID
	}
	b.exec(t, `
WITH e AS (
  INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT $1, md5('e' || n)::uuid, 'run.completed', md5('s' || n)::uuid, '{}' FROM generate_series(1, $4::integer) n RETURNING id
)
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, next_attempt_at, requested)
SELECT $1, id, endpoint, now() + shift, false FROM e, (VALUES ($2::uuid, interval '-1 hour'), ($3, interval '1 hour')) x (endpoint, shift)`,
		b.account, b.due, b.waiting, n)
	b.exec(t, `
WITH a AS (INSERT INTO accounts (id, name, plan_code) SELECT md5('a' || n)::uuid, 'a', 'p' FROM generate_series(1, $1::integer) n RETURNING id)
INSERT INTO webhook_queues (account_id, wake_at) SELECT id, now() - interval '1 minute' FROM a`, n)
	b.exec(t, `UPDATE webhook_queues SET owner = $2, wake_at = now() - interval '1 hour', version = 0 WHERE account_id = $1`, b.account, b.owner)
	for _, table := range []string{"events", "webhook_deliveries", "webhook_queues", "webhook_endpoints"} {
		b.exec(t, `VACUUM ANALYZE `+table)
	}
	rows, err := b.pool.Query(t.Context(), `
SELECT event_id FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 ORDER BY next_attempt_at, event_id LIMIT 50`, b.account, b.due)
	if err != nil {
		t.Fatal(err)
	}
	if b.events, err = pgx.CollectRows(rows, pgx.RowTo[store.ID]); err != nil {
		t.Fatal(err)
	}
	if err := b.pool.QueryRow(t.Context(), `SELECT min(next_attempt_at) FROM webhook_deliveries`).Scan(&b.position); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *backlog) accounts() []store.ID { return []store.ID{b.account} }

func (b *backlog) tenfold(id store.ID) []store.ID { return slices.Repeat([]store.ID{id}, 10) }

// explain executes a statement, undoes it, and returns how many rows its scans and how many pages it touched.
func (b *backlog) explain(t *testing.T, sql string, args []any) (rows, pages int) {
	t.Helper()
	for range 2 { // the first time includes what pruning reads
		var text []byte
		tx, err := b.pool.Begin(t.Context())
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
