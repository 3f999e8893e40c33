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

// TestHashOf: a hash contains the length of each field, so that no two lists of fields have one. It is stored, so it must
// not change.
func TestHashOf(t *testing.T) {
	// SHA-256 of 01 'a' 02 'b' 'c', by Python's hashlib.
	equal(t, "ea1cc672b17a5c99d273503a298965ef39b3616dfc46fb44022907c44f4e34fa", fmt.Sprintf("%x", HashOf("a", "bc")))
	long := strings.Repeat("x", 300) // its length takes two bytes
	if HashOf(long) == HashOf(long[:299], "x") {
		t.Error("a long field has the hash of two")
	}
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

func TestParseKey(t *testing.T) {
	long := strings.Repeat("k", MaxKeyLength)
	const visible = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"
	escaped := strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(visible)
	for header, want := range map[string]string{
		`"8e03978e-40d5-43dd-bc93-6894a57f9324"`: `8e03978e-40d5-43dd-bc93-6894a57f9324`, // the draft's own example
		`k`:                                      `k`,
		visible:                                  visible, // bare: only a quote at the beginning quotes, and a backslash is itself
		`"` + escaped + `"`:                      visible,
		`"a\\b"`:                                 `a\b`, // the same key, quoted
		`"\"k\""`:                                `"k"`, // a key that contains quotes
		long:                                     long,
		`"` + long + `"`:                         long, // the quotes do not count
		``:                                       "it is empty",
		`""`:                                     "it is empty",
		`"` + long + `k"`:                        "it has 256 characters, more than 255",
		`a b`:                                    "character 2 is not visible ASCII",
		"\xff":                                   "character 1 is not visible ASCII",
		`"k\"`:                                   "the quoted string has no closing quote",
		`"a\bc"`:                                 `in the quoted string, \ is allowed before " and \ only`,
		`"k", "k"`:                               "there is text after the quoted string",
	} {
		got, err := ParseKey(header)
		if err != nil {
			got += err.Error()
		}
		equal(t, want, got, header)
	}
}

// FuzzParseKey: an accepted key is visible ASCII of a bounded length, and both of its forms are parsed as the same key.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"", "k", `"k"`, `"a\\b"`, `"\"k\""`, `a"b`, `"`, `"k`, `"k\`, `"k" `, `"k";a=1`, "\x00", "k\xff", " k", `""`, `\`, strings.Repeat("k", 256),
	} {
		f.Add(seed)
	}
	quote := strings.NewReplacer(`"`, `\"`, `\`, `\\`)
	f.Fuzz(func(t *testing.T, header string) {
		key, err := ParseKey(header)
		if err != nil {
			if key != "" || err.Error() == "" {
				t.Errorf("%q: got %q with the error %q", header, key, err)
			}
			return
		}
		if len(key) < 1 || len(key) > MaxKeyLength || strings.ContainsFunc(key, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			t.Errorf("%q: got %q", header, key)
		}
		if again, err := ParseKey(`"` + quote.Replace(key) + `"`); again != key || err != nil {
			t.Errorf("%q, quoted: got %q, %v", key, again, err)
		}
		if again, err := ParseKey(key); !strings.HasPrefix(key, `"`) && (again != key || err != nil) {
			t.Errorf("%q, bare: got %q, %v", key, again, err)
		}
	})
}
