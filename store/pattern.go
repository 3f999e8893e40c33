package store

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first used. Compiling all expressions of this
// program took a quarter of the time from a command's start to its first statement.
func Pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}
