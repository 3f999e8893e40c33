package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A Cost is what one execution of a statement touched.
type Cost struct {
	Rows  int // that scans returned or passed over
	Pages int // of tables and indexes
}

// Flat reports whether a statement that costs c in a small database costs about the same in a large one, where it costs
// large. The indexes of the large one have more levels.
func (c Cost) Flat(large Cost) bool {
	return large.Rows <= c.Rows+c.Rows/10+5 && large.Pages <= 2*c.Pages+20
}

// A Session is one session of a pool. It keeps the plans of its statements as the sessions of a service do: in a hot
// session, the plan that was made first. Plans of Citus have another form, which this does not read.
type Session struct{ conn *pgxpool.Conn }

// NewSession returns a session of a pool until the test ends.
func NewSession(t testing.TB, pool *pgxpool.Pool) *Session {
	t.Helper()
	s := newSession(t, pool)
	t.Cleanup(s.conn.Release)
	return s
}

// Explain returns what a statement costs in a session of a pool.
func Explain(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) Cost {
	t.Helper()
	s := newSession(t, pool)
	defer s.conn.Release()
	return s.Explain(t, sql, args...)
}

// newSession returns a session that the caller releases.
func newSession(t testing.TB, pool *pgxpool.Pool) *Session {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	Must(t, err)
	return &Session{conn}
}

// Plan makes the plan of a statement by the present statistics.
func (s *Session) Plan(t testing.TB, sql string) {
	t.Helper()
	name, params := s.prepare(t, sql)
	// In a hot session the plan does not depend on the parameters.
	s.run(t, "EXPLAIN "+execute(name, strings.Split(strings.Repeat("NULL,", len(params)), ",")[:len(params)]), sql)
}

// Explain executes a statement, undoes it, and returns what it cost. The arguments are the arguments of a query: its
// form on Citus may precede them. It executes the statement twice, as the first time may include what happens once,
// such as pruning.
func (s *Session) Explain(t testing.TB, sql string, args ...any) Cost {
	t.Helper()
	name, params := s.prepare(t, sql)
	// What precedes the arguments of the parameters, such as the form on Citus, is for pgx.
	args = args[len(args)-len(params):]
	literals := make([]string, len(params))
	for i, param := range params {
		text, err := s.conn.Conn().TypeMap().Encode(param, pgtype.TextFormatCode, args[i], nil)
		if err != nil {
			t.Fatalf("parameter %d: %v\n%s", i+1, err, sql)
		}
		if literals[i] = "NULL"; text != nil {
			literals[i] = "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
		}
	}
	var plan string
	for range 2 {
		plan = s.run(t, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute(name, literals), sql)
	}
	return costOf(t, plan)
}

// costOf reads the JSON form of a plan that was executed.
func costOf(t testing.TB, plan string) Cost {
	t.Helper()
	var plans []struct{ Plan planNode }
	Must(t, json.Unmarshal([]byte(plan), &plans))
	node := &plans[0].Plan
	return Cost{node.rows(), node.Hit + node.Read}
}

// ExplainIn executes a statement in a transaction, with a plan for its arguments, and returns what it cost.
func ExplainIn(t testing.TB, tx pgx.Tx, s Statement) Cost {
	t.Helper()
	var plan string
	for range 2 { // see Explain
		if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+s.SQL, s.Args...).Scan(&plan); err != nil {
			t.Fatalf("%v\n%s", err, s.SQL)
		}
	}
	return costOf(t, plan)
}

// prepare prepares a statement under a name made of its text, and returns the types of its parameters.
func (s *Session) prepare(t testing.TB, sql string) (name string, params []uint32) {
	t.Helper()
	name = fmt.Sprintf("explained_%x", sha256.Sum256([]byte(sql)))[:32]
	prepared, err := s.conn.Conn().Prepare(t.Context(), name, sql) // once: pgx remembers it
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return name, prepared.ParamOIDs
}

// execute returns the EXECUTE of a prepared statement with literals as its parameters.
func execute(name string, literals []string) string {
	if len(literals) == 0 {
		return "EXECUTE " + name
	}
	return "EXECUTE " + name + " (" + strings.Join(literals, ", ") + ")"
}

// run runs an EXPLAIN of a statement in a transaction that is rolled back, and returns its lines.
func (s *Session) run(t testing.TB, explain, sql string) string {
	t.Helper()
	tx, err := s.conn.Begin(t.Context())
	Must(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	lines, err := store.Collect(t.Context(), tx, pgx.RowTo[string], explain, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return strings.Join(lines, "\n")
}

// A planNode is a node of EXPLAIN's JSON. Rows are per loop.
type planNode struct {
	Type     string     `json:"Node Type"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Filtered float64    `json:"Rows Removed by Filter"`
	Rechecks float64    `json:"Rows Removed by Index Recheck"`
	Hit      int        `json:"Shared Hit Blocks"`
	Read     int        `json:"Shared Read Blocks"`
	Plans    []planNode `json:"Plans"`
}

// rows returns the rows that the scans of the node and below it have read.
func (n *planNode) rows() (rows int) {
	if strings.Contains(n.Type, "Scan") && n.Type != "Subquery Scan" {
		rows = int((n.Rows + n.Filtered + n.Rechecks) * n.Loops)
	}
	for i := range n.Plans {
		rows += n.Plans[i].rows()
	}
	return rows
}

// VacuumEmpty vacuums tables that have next to no rows. Plans made then assume so, and sessions keep them, because
// these tables are not vacuumed or analyzed again while they grow.
func VacuumEmpty(t testing.TB, pool *pgxpool.Pool, tables ...string) {
	t.Helper()
	for _, table := range tables {
		Exec(t, pool, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)", "VACUUM ANALYZE "+table)
	}
}
