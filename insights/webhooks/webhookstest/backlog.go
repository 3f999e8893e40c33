package webhookstest

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// A Case is a statement whose cost must not depend on how many deliveries are pending.
type Case struct {
	Name, SQL string
	Args      func(*Backlog) []any
}

// CostsNothing checks that each statement touches about as many rows and pages where few deliveries are pending as
// where many are: due deliveries of its own endpoint, deliveries of another endpoint that wait for a retry, and
// deliveries of many other accounts.
//
// Hot sessions keep their plans, so the same must hold in a hot session that made its plans when there were no events
// and deliveries. Background statements run in plain sessions. Citus has other statements, which
// TestFaultCitusServerAway in cmd/aiv/e2e shows to read only the servers of their accounts.
func CostsNothing(t *testing.T, hot, background []Case) {
	t.Helper()
	storetest.SkipOnCitus(t, "about plans of PostgreSQL")
	few, many := newBacklog(t, 200), newBacklog(t, 2000)
	early := storetest.NewSession(t, many.db.Pool)
	for _, c := range hot {
		early.Plan(t, c.SQL)
	}
	few.fill(t)
	many.fill(t)
	compare(t, hot, few, many, storetest.NewSession(t, few.db.Pool), early, "a large backlog and plans for empty tables")
	for _, table := range []string{"events", "webhook_deliveries"} {
		few.db.Exec(t, `VACUUM ANALYZE `+table)
		many.db.Exec(t, `VACUUM ANALYZE `+table)
	}
	compare(t, hot, few, many, storetest.NewSession(t, few.db.Pool), storetest.NewSession(t, many.db.Pool), "a large backlog")
	if len(background) > 0 {
		compare(t, background, few, many, storetest.NewSession(t, plain(t, few.db.Pool)), storetest.NewSession(t, plain(t, many.db.Pool)), "a large backlog")
	}
}

func plain(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	plain, err := store.OpenPlain(t.Context(), pool, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	return plain
}

func compare(t *testing.T, cases []Case, few, many *Backlog, small, large *storetest.Session, what string) {
	t.Helper()
	for _, c := range cases {
		cost, more := small.Explain(t, c.SQL, c.Args(few)...), large.Explain(t, c.SQL, c.Args(many)...)
		if !cost.Flat(more) {
			t.Errorf("%s: %+v, and %+v with %s", c.Name, cost, more, what)
		}
	}
}

// A Backlog is a database with pending deliveries, as many that are due as that wait for a retry.
type Backlog struct {
	db             *DB
	n              int
	Account, Owner store.ID
	Due, Waiting   store.ID   // endpoints
	Events         []store.ID // the first deliveries that are due
	Position       time.Time  // of the last of them
}

// newBacklog returns a backlog of one event, by whose statistics plans are made until fill, and of n other accounts.
func newBacklog(t *testing.T, n int) *Backlog {
	t.Helper()
	db := newDB(t)
	b := &Backlog{db: db, n: n, Account: db.NewAccount(t), Owner: store.NewID(), Due: store.NewID(), Waiting: store.NewID()}
	db.Exec(t, `
INSERT INTO webhook_endpoints (account_id, id, slot, url, description, events)
VALUES ($1, $2, 1, 'https://due.example/', '', '{*}'), ($1, $3, 2, 'https://waiting.example/', '', '{*}')`, b.Account, b.Due, b.Waiting)
	db.Exec(t, `INSERT INTO webhook_queues (account_id, owner, wake_at) VALUES ($1, $2, now() - interval '1 hour')`, b.Account, b.Owner)
	db.Exec(t, `
WITH a AS (INSERT INTO accounts (id, name, plan_code) SELECT md5('a' || n)::uuid, 'a', 'p' FROM generate_series(1, $1::integer) n RETURNING id)
INSERT INTO webhook_queues (account_id, wake_at) SELECT id, now() - interval '1 minute' FROM a`, n)
	db.Exec(t, `VACUUM ANALYZE webhook_queues`)
	db.Exec(t, `VACUUM ANALYZE webhook_endpoints`)
	b.queue(t, 0, 0)
	storetest.VacuumEmpty(t, db.Pool, "events", "webhook_deliveries")
	return b
}

// queue queues deliveries of new events, with numbers from first to last, to both endpoints.
func (b *Backlog) queue(t *testing.T, first, last int) {
	t.Helper()
	b.db.Exec(t, `
WITH e AS (
  INSERT INTO events (account_id, id, type, subject_id, data)
  SELECT $1, md5('e' || n)::uuid, 'run.completed', md5('s' || n)::uuid, '{}' FROM generate_series($4::integer, $5) n RETURNING id
)
INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, next_attempt_at, requested)
SELECT $1, id, endpoint, now() + shift, false FROM e, (VALUES ($2::uuid, interval '-1 hour'), ($3, interval '1 hour')) x (endpoint, shift)`,
		b.Account, b.Due, b.Waiting, first, last)
}

// fill queues as many deliveries as there are other accounts.
func (b *Backlog) fill(t *testing.T) {
	t.Helper()
	b.queue(t, 1, b.n)
	rows, err := b.db.Pool.Query(t.Context(), `
SELECT event_id FROM webhook_deliveries WHERE account_id = $1 AND endpoint_id = $2 ORDER BY next_attempt_at, event_id LIMIT 50`, b.Account, b.Due)
	if err != nil {
		t.Fatal(err)
	}
	if b.Events, err = pgx.CollectRows(rows, pgx.RowTo[store.ID]); err != nil {
		t.Fatal(err)
	}
	if err := b.db.Pool.QueryRow(t.Context(), `SELECT min(next_attempt_at) FROM webhook_deliveries`).Scan(&b.Position); err != nil {
		t.Fatal(err)
	}
}

// Accounts returns the account alone.
func (b *Backlog) Accounts() []store.ID { return []store.ID{b.Account} }

// Tenfold repeats an id.
func (b *Backlog) Tenfold(id store.ID) []store.ID { return slices.Repeat([]store.ID{id}, 10) }
