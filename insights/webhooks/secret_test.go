package webhooks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/storetest"
)

// TestDerivedSecrets: the derivation never changes, or all customers' secrets would.
func TestDerivedSecrets(t *testing.T) {
	t.Parallel()
	m := &Master{[]byte(strings.Repeat("m", 32))}
	id, err := store.ParseID("wh", "wh_01k3v5zyj8f6arvv8ad0qs6z1h")
	must(t, err)
	other := &Master{[]byte(strings.Repeat("n", 32))}
	for want, got := range map[string]string{
		"whsec_IYj63cmtvDtfQnJdr8Uwo6D7skA7VD7LUOzz67WZIbo=": m.secret(id, 1),
		"whsec_nV8Rq/Y25xh+1Kaq8zAV8o+wCELRB6JhPV7JpbKkgOQ=": m.secret(id, 2),
		"whsec_/Y8hVB9pX4Tu2PzIxLq7uHkRO77twLY/V79mg08DHas=": m.secret(store.ID{}, 1),
		"whsec_tI9LArLD6kCQigRcvKmuK8wow03qH2BA2lZj+yrOFwI=": other.secret(id, 1),
	} {
		equal(t, want, got)
	}
}

// TestMasterSecret: a master has 32 bytes or more, besides space at the end, and stays the one that was first used.
func TestMasterSecret(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("k", 32)
	pools := map[string]*pgxpool.Pool{"file": storetest.New(t), "database": storetest.New(t)}
	for _, test := range []struct {
		pool, text, want string // the text of the file, or "" without one; the key, or a part of the error
	}{
		{"file", key[1:] + " \n", "has 31 bytes; it needs 32 or more"},
		{"file", key, key},
		{"file", key + "\n", key},
		{"file", key + " \r\n\t", key},
		{"file", " " + key, ErrOtherMaster.Error()},
		{"file", "", ErrOtherMaster.Error()},
		{"database", "", ""},
		{"database", "", ""},
		{"database", key, ErrOtherMaster.Error()},
	} {
		file := ""
		if test.text != "" {
			file = filepath.Join(t.TempDir(), "master")
			must(t, os.WriteFile(file, []byte(test.text), 0o600))
		}
		m, err := OpenMaster(t.Context(), pools[test.pool], file)
		got := fmt.Sprint(err)
		if err == nil {
			got = string(m.key)
			equal(t, 32, len(got), "bytes of the key")
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
