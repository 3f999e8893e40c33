package schema

import (
	"io/fs"
	"time"
)

// Exported for the tests, which are an external package because storetest imports this one.

// From returns the configuration with these files.
func (c Config) From(files fs.FS) Config {
	c.files = files
	return c
}

// Locking returns the configuration with these bounds of waits for locks, and next to no time between attempts.
func (c Config) Locking(timeout time.Duration, attempts int) Config {
	c.lockTimeout, c.attempts, c.pause = timeout, attempts, time.Millisecond
	return c
}

// Statements returns the statements of a migration.
func Statements(sql string) (all []string) {
	for begin, end := range statements(sql) {
		all = append(all, sql[begin:end])
	}
	return all
}
