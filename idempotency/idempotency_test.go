package idempotency

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// TestHashOf: different lists of fields have different hashes, even if their concatenations are equal. The hash is stored,
// so it must not change.
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
	// SHA-256 of 01 'a' 02 'b' 'c', by Python's hashlib.
	equal(t, "ea1cc672b17a5c99d273503a298965ef39b3616dfc46fb44022907c44f4e34fa", fmt.Sprintf("%x", HashOf("a", "bc")))
}

const response = "{\"k\":\t\"\x00\xff\"}\n"

// remember inserts records with these keys and this age, of a new run of a new account.
func remember(t *testing.T, pool *pgxpool.Pool, age string, keys ...string) (account, run store.ID) {
	t.Helper()
	account, run = store.NewID(), store.NewID()
	_, err := pool.Exec(t.Context(), `
INSERT INTO idempotency_records (account_id, method, route, key, request_hash, run_id, answer, created_at)
SELECT $1, 'POST', '/v1/runs', unnest($2::text[]), sha256('x'), $3, $4, now() - $5::interval`, account, keys, run, []byte(response), age)
	must(t, err)
	return account, run
}

func TestLoadFindsTheRecord(t *testing.T) {
	t.Parallel()
	pool := storetest.Hot(t)
	account, run := remember(t, pool, "0", "Key")
	for _, test := range []struct {
		account            store.ID
		method, route, key string
		found              bool
	}{
		{account, "POST", "/v1/runs", "Key", true},
		{account, "POST", "/v1/runs", "Ke", false},
		{account, "POST", "/v1/runs", "key", false},
		{store.NewID(), "POST", "/v1/runs", "Key", false},
		{account, "PUT", "/v1/runs", "Key", false},
		{account, "POST", "/v1/run", "Key", false},
	} {
		var want *Record
		if test.found {
			want = &Record{RequestHash: sha256.Sum256([]byte("x")), RunID: run, Response: []byte(response)}
		}
		got, err := Load(t.Context(), pool, Scope{test.account, Operation{test.method, test.route}}, test.key)
		must(t, err)
		equal(t, want, got, test)
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
	equal(t, int64(len(keys)+2), purged.Load(), "purged")
	left, err := store.Collect(t.Context(), pool, pgx.RowTo[string], `SELECT key FROM idempotency_records ORDER BY key`)
	must(t, err)
	equal(t, []string{"now", "younger"}, left, "keys")
}

var must, equal = storetest.Must, storetest.Equal
