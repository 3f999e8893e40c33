package idempotency

import (
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	seen := make(map[Hash][]string)
	for _, fields := range [][]string{
		{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"ab", ""}, {"b", "a"}, {"a"}, {"A"}, {"a\x00b"}, {"a", "\x01b"},
		{"a\x01b"}, {"\x01a"}, {"\x01", "a"}, {long}, {long[:299], "x"}, {long, ""}, {"\u00e9"}, {"e\u0301"},
	} {
		h := HashOf(fields...)
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", fields, other)
		}
		seen[h] = fields
	}
	// The hash is stored, so it must not change: SHA-256 of 01 'a' 02 'b' 'c', by Python's hashlib.
	got := HashOf("a", "bc")
	if want := "ea1cc672b17a5c99d273503a298965ef39b3616dfc46fb44022907c44f4e34fa"; hex.EncodeToString(got[:]) != want {
		t.Errorf("got %x, want %s", got, want)
	}
}

// memory is a database with the records of accounts a and b.
type memory struct {
	t    *testing.T
	pool *pgxpool.Pool
}

var (
	a, b = store.NewID(), store.NewID()
	runs = Operation{"POST", "/v1/runs"}
)

const response = "{\"k\":\t\"\x00\xff\"}\n"

// remember records a key of a run that was created so long ago.
func (m memory) remember(account, run store.ID, key, age string) {
	m.t.Helper()
	_, err := m.pool.Exec(m.t.Context(), `
INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
VALUES ($1, 'POST', '/v1/runs', $2, sha256('x'), $3, $4, now() - $5::interval)`,
		account, key, run, []byte(response), age)
	if err != nil {
		m.t.Fatal(err)
	}
}

// wantKeys checks the keys of all records.
func (m memory) wantKeys(want ...string) {
	m.t.Helper()
	keys, err := store.Collect(m.t.Context(), m.pool, pgx.RowTo[string], `SELECT key FROM idempotency_records ORDER BY key`)
	if diff := cmp.Diff(want, keys); err != nil || diff != "" {
		m.t.Errorf("keys: %v (-want +got):\n%s", err, diff)
	}
}

func TestLoadFindsTheRecord(t *testing.T) {
	t.Parallel()
	m := memory{t, storetest.Hot(t)}
	run := store.NewID()
	m.remember(a, run, "Key", "0")
	want := &Record{RunID: run, Response: []byte(response)}
	hex.Decode(want.RequestHash[:], []byte("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"))
	for _, test := range []struct {
		scope Scope
		key   string
		want  *Record
	}{
		{Scope{a, runs}, "Key", want},
		{Scope{a, runs}, "Ke", nil},
		{Scope{a, runs}, "key", nil},
		{Scope{b, runs}, "Key", nil},
		{Scope{a, Operation{"PUT", "/v1/runs"}}, "Key", nil},
		{Scope{a, Operation{"POST", "/v1/run"}}, "Key", nil},
	} {
		got, err := Load(t.Context(), m.pool, test.scope, test.key)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%+v, %s: %v (-want +got):\n%s", test.scope, test.key, err, diff)
		}
	}
	m.pool.Close()
	if _, err := Load(t.Context(), m.pool, Scope{a, runs}, "Key"); err == nil {
		t.Error("no error while the database is unavailable")
	}
}

func TestPurgeKeepsReplayableKeys(t *testing.T) {
	t.Parallel()
	m := memory{t, storetest.Hot(t)}
	for key, age := range map[string]string{"now": "0", "younger": "23 h 59 min", "older": "24 h 1 min", "month": "1 month"} {
		m.remember(a, store.NewID(), key, age)
	}
	const more = 2*purgeStep + 2000
	if _, err := m.pool.Exec(t.Context(), `
INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
SELECT $1, 'POST', '/v1/runs', n::text, sha256('x'), $1, '', now() - interval '2 days' FROM generate_series(1, $2::integer) n`,
		a, more); err != nil {
		t.Fatal(err)
	}

	if !storetest.OnCitus() {
		// Both statements read few rows, however many younger records there are.
		background, err := store.OpenPlain(t.Context(), m.pool, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer background.Close()
		old := time.Now().Add(-10 * 24 * time.Hour)
		for sql, args := range map[string][]any{purgeEnd: {old, purgeStep}, purge: {old}} {
			if cost := storetest.Explain(t, background, sql, args...); cost.Rows > 10 || cost.Pages > 20 {
				t.Errorf("a purge of one record touches %d rows and %d pages:\n%s", cost.Rows, cost.Pages, sql)
			}
		}
	}

	n, err := Purge(t.Context(), storetest.WithClockAhead(t, m.pool, 48*time.Hour), 24*time.Hour)
	if _, ok := errors.AsType[*store.ClockError](err); !ok || n != 0 {
		t.Errorf("with a clock two days ahead: %d were purged, %v", n, err)
	}
	var purged atomic.Int64
	var wg sync.WaitGroup
	for range 2 { // processes
		wg.Go(func() {
			n, err := Purge(t.Context(), m.pool, 24*time.Hour)
			if err != nil {
				t.Error(err)
			}
			purged.Add(n)
		})
	}
	wg.Wait()
	if n := purged.Load(); n != more+2 {
		t.Errorf("purged: got %d, want %d", n, more+2)
	}
	m.wantKeys("now", "younger")
}

// TestForgetDeletesRecordsOfRuns: the records of the given runs are deleted, and those of other runs that were created
// at the same time are not.
func TestForgetDeletesRecordsOfRuns(t *testing.T) {
	t.Parallel()
	m := memory{t, storetest.Hot(t)}
	run := store.NewID()
	m.remember(a, run, "forgotten", "0")
	m.remember(a, store.NewID(), "another run", "0")
	m.remember(b, run, "another account", "0")
	var at time.Time
	err := m.pool.QueryRow(t.Context(), `UPDATE idempotency_records SET created_at = now() RETURNING created_at`).Scan(&at)
	if err == nil {
		err = pgx.BeginFunc(t.Context(), m.pool, func(tx pgx.Tx) error {
			return Forget(t.Context(), tx, a, []store.ID{run}, []time.Time{at})
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	m.wantKeys("another account", "another run")
}
