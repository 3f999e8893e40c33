package storetest_test

import (
	"sync"
	"testing"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	for _, name := range []string{"one", "two", "three", "four"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := storetest.New(t)
			var database string
			var migrations int
			err := pool.QueryRow(t.Context(),
				`SELECT current_database(), (SELECT count(*) FROM schema_migrations)`).Scan(&database, &migrations)
			if err != nil {
				t.Fatal(err)
			}
			if migrations == 0 {
				t.Error("the database is not migrated")
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[database] {
				t.Errorf("two tests share database %s", database)
			}
			seen[database] = true
		})
	}
}
