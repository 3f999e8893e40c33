//go:build citus

package gateway_test

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"aiv/store/storetest"
)

// TestOneShard plays the golden files on a Citus cluster and explains each statement that aiv serve has sent. Each task of a plan is
// for one shard, and each statement is about one account, so no plan has more than one task. Rows that a statement inserts go to the
// shard of their account; Citus shows no tasks for these.
func TestOneShard(t *testing.T) {
	if !storetest.OnCitus() {
		t.Fatal("-citus is missing: the URL of a coordinator")
	}
	f := newFixture(t)
	sent := &sentStatements{seen: make(map[string][]any)}
	f.serves = storetest.WithTracer(t, f.pool, sent)
	address := f.target(t)
	f.serveWorkers(t, address)
	for _, file := range goldenFiles(t) {
		if s := parseStory(t, readGolden(t, file)); s.fault == "" {
			address.play(t, s)
		}
	}
	explained, tasks := 0, 0
	for sql, args := range sent.seen {
		first, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
		if !strings.Contains(" SELECT INSERT UPDATE DELETE WITH ", " "+strings.ToUpper(first)+" ") {
			continue
		}
		rows, err := f.pool.Query(t.Context(), "EXPLAIN (COSTS OFF) "+sql, args...)
		must(t, err)
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
	t.Logf("%d statements, %d tasks", explained, tasks)
}

var taskCount = regexp.MustCompile(`Task Count: (\d+)`)

// sentStatements are the statements that a pool has sent, with the arguments of the first time.
type sentStatements struct {
	mu   sync.Mutex
	seen map[string][]any
}

func (s *sentStatements) add(sql string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen[sql]; !ok {
		s.seen[sql] = args
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *sentStatements) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	sql, args := q.SQL, q.Args
	if len(args) > 0 {
		if shape, ok := args[0].(pgx.QueryRewriter); ok {
			sql, args, _ = shape.RewriteQuery(ctx, conn, sql, args[1:])
		}
	}
	s.add(sql, args)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *sentStatements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *sentStatements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (s *sentStatements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.add(q.SQL, q.Args)
}

// TraceBatchEnd implements pgx.BatchTracer.
func (s *sentStatements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
