package idempotency_test

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aiv/idempotency"
	"aiv/store"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestHashOf: different lists of fields have different hashes, even if their concatenations are equal.
func TestHashOf(t *testing.T) {
	long := strings.Repeat("x", 300) // its length takes two bytes
	lists := [][]string{
		{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"ab", ""}, {"b", "a"}, {"a"}, {"a", ""}, {"A"},
		{"1", "a", "1", "b"}, {"2", "a", "b", "0"}, {"1", "a", "0"}, {"a\x00b"}, {"a", "\x01b"}, {"a\x01b"}, {"\x01a"}, {"\x01", "a"},
		{long}, {long[:299], "x"}, {long, ""}, {"\u00e9"}, {"e\u0301"},
	}
	seen := make(map[idempotency.Hash][]string)
	for _, fields := range lists {
		h := idempotency.HashOf(fields...)
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", fields, other)
		}
		seen[h] = fields
		if again := idempotency.HashOf(slices.Clone(fields)...); again != h {
			t.Errorf("%q has two hashes", fields)
		}
	}
	// The hash is stored, so it must not change: SHA-256 of 01 'a' 02 'b' 'c', by Python's hashlib.
	got := idempotency.HashOf("a", "bc")
	if want := "ea1cc672b17a5c99d273503a298965ef39b3616dfc46fb44022907c44f4e34fa"; hex.EncodeToString(got[:]) != want {
		t.Errorf("got %x, want %s", got, want)
	}
}

// memory is a database with two accounts and a run of each.
type memory struct {
	pool            *pgxpool.Pool
	account, run    store.ID
	account2, other store.ID
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{storetest.Hot(t), store.NewID(), store.NewID(), store.NewID(), store.NewID()}
	exec(t, m.pool, `INSERT INTO plans (code, features) VALUES ('p', '{}')`)
	for account, run := range map[store.ID]store.ID{m.account: m.run, m.account2: m.other} {
		exec(t, m.pool, `INSERT INTO accounts (id, name, plan_code) VALUES ($1, 'a', 'p')`, account)
		exec(t, m.pool, `INSERT INTO credentials (id, account_id, name, key_prefix, key_hash, scopes)
			VALUES ($1, $1, 'c', 'aiv_live_00000000', sha256(uuid_send($1)), '{}')`, account)
		exec(t, m.pool, `INSERT INTO measurement_runs (account_id, id, credential_id, measurement_type, methodology_version, model_ids,
			question_ids, repetitions, locale, country, language, total_jobs)
			VALUES ($1, $2, $1, 'grounded', 'AIVM-1.0', '{m}', '{q}', 1, 'it-IT', 'IT', 'it', 1)`, account, run)
	}
	return m
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (m *memory) remember(t *testing.T, key, age string) {
	t.Helper()
	exec(t, m.pool, `INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
		VALUES ($1, 'POST', '/v1/runs', $2, sha256('x'), $3, $4, now() - $5::interval)`, m.account, key, m.run, []byte("{\"k\":\t\"\x00\xff\"}\n"), age)
}

// keys returns the keys of all records.
func (m *memory) keys(t *testing.T) []string {
	t.Helper()
	rows, err := m.pool.Query(t.Context(), `SELECT key FROM idempotency_records ORDER BY key`)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestLoadFindsTheRecord(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.remember(t, "Key", "0")
	own := idempotency.Scope{AccountID: m.account, Operation: idempotency.Operation{Method: "POST", Route: "/v1/runs"}}
	want := &idempotency.Record{RunID: m.run, Response: []byte("{\"k\":\t\"\x00\xff\"}\n")}
	hex.Decode(want.RequestHash[:], []byte("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"))
	for _, test := range []struct {
		name  string
		scope idempotency.Scope
		key   string
		want  *idempotency.Record
	}{
		{"the recorded key", own, "Key", want},
		{"another key", own, "Ke", nil},
		{"another case", own, "key", nil},
		{"another account", idempotency.Scope{AccountID: m.account2, Operation: idempotency.Operation{Method: "POST", Route: "/v1/runs"}}, "Key", nil},
		{"another method", idempotency.Scope{AccountID: m.account, Operation: idempotency.Operation{Method: "PUT", Route: "/v1/runs"}}, "Key", nil},
		{"another route", idempotency.Scope{AccountID: m.account, Operation: idempotency.Operation{Method: "POST", Route: "/v1/run"}}, "Key", nil},
	} {
		got, err := idempotency.Load(t.Context(), m.pool, test.scope, test.key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	m.pool.Close()
	if _, err := idempotency.Load(t.Context(), m.pool, own, "Key"); err == nil {
		t.Error("no error while the database is unavailable")
	}
}

func TestPurgeKeepsReplayableKeys(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	for key, age := range map[string]string{"now": "0", "younger": "23 h 59 min", "older": "24 h 1 min", "month": "1 month"} {
		m.remember(t, key, age)
	}
	// More than one step.
	exec(t, m.pool, `INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
		SELECT $1, 'POST', '/v1/runs', n::text, sha256('x'), $2, '', now() - interval '2 days' FROM generate_series(1, 12000) n`, m.account, m.run)

	if !storetest.OnCitus() {
		// Both statements read few rows, however many younger records there are.
		background, err := store.OpenPlain(t.Context(), m.pool, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer background.Close()
		old := time.Now().Add(-10 * 24 * time.Hour)
		for sql, args := range map[string][]any{idempotency.PurgeEndSQL: {old, 5000}, idempotency.PurgeSQL: {old}} {
			if cost := storetest.Explain(t, background, sql, args...); cost.Rows > 10 || cost.Pages > 20 {
				t.Errorf("a purge of one record touches %d rows and %d pages:\n%s", cost.Rows, cost.Pages, sql)
			}
		}
	}

	ahead := storetest.WithClockAhead(t, m.pool, 48*time.Hour)
	if n, err := idempotency.Purge(t.Context(), ahead, 24*time.Hour); n != 0 {
		t.Errorf("with a clock two days ahead: %d were purged", n)
	} else if _, ok := errors.AsType[*store.ClockError](err); !ok {
		t.Errorf("with a clock two days ahead: got %v", err)
	}

	for _, step := range []struct {
		processes int
		purged    int64
	}{{2, 12002}, {1, 0}} {
		var purged atomic.Int64
		var wg sync.WaitGroup
		for range step.processes {
			wg.Go(func() {
				n, err := idempotency.Purge(t.Context(), m.pool, 24*time.Hour)
				if err != nil {
					t.Error(err)
				}
				purged.Add(n)
			})
		}
		wg.Wait()
		if n := purged.Load(); n != step.purged {
			t.Errorf("purged: got %d, want %d", n, step.purged)
		}
		if diff := cmp.Diff([]string{"now", "younger"}, m.keys(t)); diff != "" {
			t.Errorf("left (-want +got):\n%s", diff)
		}
	}
}

// TestForgetDeletesRecordsOfRuns: the records of the given runs are deleted, and those of other runs that were created at the same time are
// not.
func TestForgetDeletesRecordsOfRuns(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, r := range []struct {
		account, run store.ID
		key          string
	}{{m.account, m.run, "forgotten"}, {m.account, store.NewID(), "another run"}, {m.account2, m.run, "another account"}} {
		exec(t, m.pool, `INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
			VALUES ($1, 'POST', '/v1/runs', $2, sha256('x'), $3, '', $4)`, r.account, r.key, r.run, at)
	}
	err := pgx.BeginFunc(t.Context(), m.pool, func(tx pgx.Tx) error {
		return idempotency.Forget(t.Context(), tx, m.account, []store.ID{m.run}, []time.Time{at})
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"another account", "another run"}, m.keys(t)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
