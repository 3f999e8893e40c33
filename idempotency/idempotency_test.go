package idempotency

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
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
		{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"b", "a"}, {"A", "b"}, {"a\x01b"}, {"\x01a", "b"}, {long}, {long[:299], "x"},
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

var (
	a, b = store.NewID(), store.NewID() // accounts
	runs = Operation{"POST", "/v1/runs"}
)

const response = "{\"k\":\t\"\x00\xff\"}\n"

// remember inserts records of account a with these keys and this age, all of one new run, which it returns.
func remember(t *testing.T, pool *pgxpool.Pool, age string, keys ...string) (run store.ID) {
	t.Helper()
	run = store.NewID()
	_, err := pool.Exec(t.Context(), `
INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
SELECT $1, 'POST', '/v1/runs', unnest($2::text[]), sha256('x'), $3, $4, now() - $5::interval`, a, keys, run, []byte(response), age)
	storetest.Must(t, err)
	return run
}

func TestLoadFindsTheRecord(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	want := &Record{RunID: remember(t, pool, "0", "Key"), Response: []byte(response)}
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
		got, err := Load(t.Context(), pool, test.scope, test.key)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%+v, %s: %v (-want +got):\n%s", test.scope, test.key, err, diff)
		}
	}
}

func TestPurgeKeepsReplayableKeys(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	remember(t, pool, "0", "now")
	remember(t, pool, "23 h 59 min", "younger")
	remember(t, pool, "24 h 1 min", "older")
	remember(t, pool, "1 month", "month")
	var keys []string
	for i := range 2*purgeStep + 2000 {
		keys = append(keys, fmt.Sprint(i))
	}
	remember(t, pool, "2 days", keys...)

	n, err := Purge(t.Context(), storetest.WithClockAhead(t, pool, 48*time.Hour), 24*time.Hour)
	if _, ok := errors.AsType[*store.ClockError](err); !ok || n != 0 {
		t.Errorf("with a clock two days ahead: %d were purged, %v", n, err)
	}
	var purged atomic.Int64
	storetest.AtOnce(2, func(int) { // processes
		n, err := Purge(t.Context(), pool, 24*time.Hour)
		if err != nil {
			t.Error(err)
		}
		purged.Add(n)
	})
	if n := purged.Load(); n != int64(len(keys)+2) {
		t.Errorf("purged: got %d, want %d", n, len(keys)+2)
	}
	left, err := store.Collect(t.Context(), pool, pgx.RowTo[string], `SELECT key FROM idempotency_records ORDER BY key`)
	storetest.Must(t, err)
	if diff := cmp.Diff([]string{"now", "younger"}, left); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
