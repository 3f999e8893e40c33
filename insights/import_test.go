package insights_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/insights"
	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/storetest"
)

// TestInvalidLines: each line is rejected for exactly this reason, and the valid lines around it are not written.
func TestInvalidLines(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	c, other := newCustomer(t, pool), newCustomer(t, pool)
	importLines := newImport(t, pool)
	theirs := store.NewID()
	must(t, importLines(other.recommendation("id:"+quoted(theirs, "rec")), other.alert("id:"+quoted(theirs, "alert"))))
	before := state(t, pool)
	unknown, erased := store.NewID(), store.NewID()
	execute(t, pool, `INSERT INTO accounts (id, name, plan_code, erased_at) VALUES ($1, 'erased', 'p', now())`, erased)
	const form = "must match ^[a-z][a-z0-9_]{0,63}$"
	const id = "^[A-Za-z0-9._:/-]{1,128}$"
	tests := []struct{ line, want string }{
		{`{"kind":"insight","x":1}`, "kind must be one of recommendation, alert"},
		{c.alert(`extra:1`), `unknown member "extra"`},
		{c.recommendation(`severity:"low"`), `unknown member "severity"`},

		{c.recommendation("id:null"), "id must not be null"},
		{c.recommendation(`id:"rec_1"`), "id must be a recommendation's id"},
		{c.recommendation("id:" + quoted(theirs, "alert")), "id must be a recommendation's id"},
		{c.alert("id:" + quoted(theirs, "rec")), "id must be an alert's id"},
		{c.alert("id:" + quoted(theirs, "alert")), "id belongs to another account"},
		{c.recommendation("id:" + quoted(theirs, "rec")), "id belongs to another account"},
		{c.alert("account_id:" + quoted(c.account, "run")), "account_id must be an account's id"},
		{c.alert("account_id:" + quoted(unknown, "acct")), "unknown account"},
		{c.recommendation("account_id:" + quoted(unknown, "acct")), "unknown account"},
		{c.alert("account_id:" + quoted(erased, "acct")), "the account is erased"},
		{c.recommendation("account_id:" + quoted(erased, "acct")), "the account is erased"},
		{c.alert("run_id:" + quoted(unknown, "run")), "unknown run of this account"},
		{c.recommendation("run_id:" + quoted(other.run, "run")), "unknown run of this account"},
		{c.alert(`run_id:"run_"`), "run_id must be a run's id or null"},
		{c.alert("run_id:"), `missing member "run_id"`},

		{c.recommendation(`type:"Add FAQ"`), "type " + form},
		{c.recommendation(`category:"offpage"`), "category must be one of on_page, off_page, technical, social"},
		{c.recommendation(`title:" "`), "title must not be empty"},
		{c.recommendation("summary:null"), "summary must not be null"},
		{c.recommendation(`priority:"critical"`), "priority must be one of high, medium, low"},
		{c.recommendation(`status:"open"`), "status must be one of suggested, accepted, in_progress, done, dismissed"},
		{c.recommendation(`model_ids:["a b"]`), "model_ids must contain only strings that match " + id},
		{c.recommendation(`question_ids:["a b"]`), "question_ids must contain only strings that match " + id},
		{c.recommendation(`created_at:"2026-01-01"`), "created_at must be an RFC 3339 time"},
		{c.recommendation("created_at:" + dayText(2)), "updated_at must not be before created_at"},
		{c.recommendation("updated_at:null"), "updated_at must not be null"},

		{c.alert(`type:"add_faq"`), "type must be one of visibility_drop, visibility_gain, citation_lost, citation_gained, competitor_gained, sentiment_shift, run_failed"},
		{c.alert(`title:" "`), "title must not be empty"},
		{c.alert(`severity:"mild"`), "severity must be one of critical, high, medium, low"},
		{c.alert(`status:"closed"`), "status must be one of open, acknowledged, resolved"},
		{c.alert("message:1"), "message must be a string"},
		{c.alert(`metric:""`), "metric " + form + " or be null"},
		{c.alert("direction:null"), "direction must not be null"},
		{c.alert(`direction:"sideways"`), "direction must be one of up, down, none"},
		{c.alert(`current_value:"1"`), "current_value must be a number or null"},
		{c.alert("baseline_value:1e999"), "baseline_value must be a number or null"},
		{c.alert(`model_id:""`), "model_id must match " + id + " or be null"},
		{c.alert(`question_id:"a b"`), "question_id must match " + id + " or be null"},
		{c.alert(`country:"it"`), "country must match ^[A-Z]{2}$ or be null"},
		{c.alert("detected_at:null"), "detected_at must not be null"},
		{c.alert("resolved_at:"), `missing member "resolved_at"`},
		{c.alert(`resolved_at:"soon"`), "resolved_at must be an RFC 3339 time or null"},
		{c.alert("resolved_at:" + dayText(2)), "resolved_at must be null, as status is open"},
		{c.alert(`status:"resolved"`), "resolved_at must be set, as status is resolved"},
		{c.alert(`status:"resolved"`, "detected_at:"+dayText(2), "resolved_at:"+dayText(1)), "resolved_at must not be before detected_at"},
	}
	for _, test := range tests {
		err := importLines(c.recommendation(), "\n", c.alert(), strings.TrimSuffix(test.line, "\n")+"\n", c.alert())
		if got, want := fmt.Sprint(err), "line 4: "+test.want; got != want {
			t.Errorf("%s: %s\nwant %s", test.line, got, want)
		}
	}
	if diff := cmp.Diff(before, state(t, pool)); diff != "" {
		t.Errorf("rejected imports changed the database (-before +after):\n%s", diff)
	}
}

// TestAllLinesAreReported: one import reports all invalid lines by number.
func TestAllLinesAreReported(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	c := newCustomer(t, pool)
	importLines := newImport(t, pool)
	duplicate := "id:" + quoted(store.NewID(), "alert")
	unknown := "run_id:" + quoted(store.NewID(), "run")
	var first20 []string
	for i := range 20 {
		first20 = append(first20, fmt.Sprintf("line %d: unknown run of this account", i+1))
	}
	tests := []struct {
		lines []string
		want  string
	}{
		{[]string{c.alert(`status:"x"`, "title:1"), c.alert(), c.recommendation("type:", "more:1")}, `line 1: status must be one of open, acknowledged, resolved; title must be a string
line 3: missing member "type"; unknown member "more"`},
		{[]string{c.alert(duplicate), c.alert(duplicate)}, "line 2: duplicate id (first on line 1)"},
		{[]string{c.recommendation(unknown), c.recommendation(), c.recommendation(unknown)}, "line 1: unknown run of this account\nline 3: unknown run of this account"},
		{slices.Repeat([]string{c.alert(unknown)}, 21), strings.Join(first20, "\n")},
		{[]string{c.alert(`id:"x"`), c.alert(`id:"x"`)}, "line 1: id must be an alert's id\nline 2: id must be an alert's id"},
	}
	for _, test := range tests {
		if err := importLines(test.lines...); fmt.Sprint(err) != test.want {
			t.Errorf("%v\nwant %s", err, test.want)
		}
	}
}

func TestImportTwice(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	c := newCustomer(t, pool)
	admin := &insights.Admin{Pool: pool, Actor: "ann", Events: eventData{}, Record: webhooks.Record}
	var progress []int
	importFile := func(lines ...string) {
		t.Helper()
		progress = nil
		n, err := admin.Import(t.Context(), strings.NewReader(strings.Join(lines, "")), func(lines int) { progress = append(progress, lines) })
		if want := (insights.Imported{Recommendations: 1, Alerts: 1}); err != nil || n != want {
			t.Fatalf("%+v (%v), want %+v", n, err, want)
		}
	}
	rec, alert := "id:"+quoted(store.NewID(), "rec"), "id:"+quoted(store.NewID(), "alert")
	file := []string{c.recommendation(rec), c.alert(alert)}

	importFile(file...)
	if diff := cmp.Diff([]int{1, 2}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	first := state(t, pool)
	importFile(file...)
	if diff := cmp.Diff(first, state(t, pool)); diff != "" {
		t.Errorf("the second import (-before +after):\n%s", diff)
	}

	importFile(c.recommendation(rec, `status:"done"`, "updated_at:"+dayText(2)), c.alert(alert))
	found, err := insights.Recommendations(t.Context(), pool, c.account, insights.RecommendationFilter{}, store.Page{Limit: 10})
	if err != nil || len(found) != 1 || found[0].Status != "done" || !found[0].UpdatedAt.Equal(day(2)) {
		t.Errorf("after a change: %+v (%v)", found, err)
	}

	// A line without an id adds a row each time.
	importFile(c.recommendation(), c.alert())
	importFile(c.recommendation(), c.alert())
	if n := len(state(t, pool).Alerts); n != 3 {
		t.Errorf("%d alerts, want 3", n)
	}

	var got []string
	err = pool.QueryRow(t.Context(), `SELECT array_agg(concat_ws(' ', actor, action, subject, detail) ORDER BY id) FROM audit_log`).Scan(&got)
	want := []string{
		`ann insights.import insights {"alerts": 1, "rows_changed": 2, "recommendations": 1}`,
		`ann insights.import insights {"alerts": 1, "rows_changed": 1, "recommendations": 1}`,
		`ann insights.import insights {"alerts": 1, "rows_changed": 2, "recommendations": 1}`,
		`ann insights.import insights {"alerts": 1, "rows_changed": 2, "recommendations": 1}`,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("audit log: %v (-want +got):\n%s", err, diff)
	}
}

// TestImportWaits: an import sees what a transaction that it waited for has added.
func TestImportWaits(t *testing.T) {
	t.Parallel()
	if storetest.OnCitus() {
		t.Skip("about locks of tables of one server")
	}
	pool := newPool(t)
	c, other := newCustomer(t, pool), newCustomer(t, pool)
	must(t, newImport(t, pool)(other.alert()))
	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // for failures
	next := store.NewID()
	_, err = tx.Exec(t.Context(), `UPDATE alerts SET id = $1`, next)
	must(t, err)
	imported := make(chan error, 1)
	go func() { imported <- newImport(t, pool)(c.alert("id:" + quoted(next, "alert"))) }()
	storetest.UntilWaiting(t, pool, "relation")
	must(t, tx.Commit(t.Context()))
	if got, want := fmt.Sprint(<-imported), "line 1: id belongs to another account"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestEraseDeletesOneAccount: an account's recommendations and alerts are deleted, in as many steps as they need, and no others.
func TestEraseDeletesOneAccount(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	c, other := newCustomer(t, pool), newCustomer(t, pool)
	must(t, newImport(t, pool)(c.recommendation(), c.alert(), other.recommendation(), other.alert()))
	const copies = 1000
	execute(t, pool, `
WITH more AS (SELECT r AS row FROM alerts r WHERE account_id = $1)
INSERT INTO alerts SELECT (jsonb_populate_record(row, jsonb_build_object('id', gen_random_uuid()))).* FROM more, generate_series(1, $2::integer)`, c.account, copies)
	for _, table := range insights.Capability.Tables {
		want := map[string]int64{"recommendations": 1, "alerts": copies + 1}[table.Name]
		if n, err := table.Erase.First(t.Context(), pool, table.Name, c.account); n != want || err != nil {
			t.Errorf("%d rows of %s were deleted, %v, want %d", n, table.Name, err, want)
		}
	}
	if s := state(t, pool); len(s.Recommendations) != 1 || len(s.Alerts) != 1 {
		t.Errorf("%d recommendations and %d alerts are left, want 1 and 1", len(s.Recommendations), len(s.Alerts))
	}
}

// tables has the rows of each table that an import writes.
type tables struct {
	Recommendations, Alerts, Audit []json.RawMessage
}

func state(t testing.TB, pool *pgxpool.Pool) (s tables) {
	t.Helper()
	must(t, pool.QueryRow(t.Context(), `
SELECT COALESCE((SELECT json_agg(r ORDER BY id) FROM recommendations r), '[]'),
  COALESCE((SELECT json_agg(a ORDER BY id) FROM alerts a), '[]'), COALESCE((SELECT json_agg(l ORDER BY id) FROM audit_log l), '[]')`).
		Scan(&s.Recommendations, &s.Alerts, &s.Audit))
	return s
}

// TestImportLocksAfterCopying: while an import sends its lines, which takes as long as its client takes, evaluations and
// other writers of alerts do not wait for it.
func TestImportLocksAfterCopying(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	c := newCustomer(t, pool)
	copied := 0
	traced := storetest.WithTracer(t, pool, &copyTracer{start: func() {
		copied++
		n := 0
		must(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE relation = ANY ('{recommendations,alerts}'::regclass[])
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND mode = 'ShareRowExclusiveLock'`).Scan(&n))
		if n > 0 {
			t.Errorf("the import has %d locks while it copies lines", n)
		}
	}})
	must(t, newImport(t, traced)(c.recommendation(), c.alert()))
	if copied != 2 {
		t.Errorf("copied %d times, want 2", copied)
	}
}

// A copyTracer calls start before a COPY.
type copyTracer struct{ start func() }

func (c *copyTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (c *copyTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *copyTracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	c.start()
	return ctx
}

func (c *copyTracer) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}
