package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestPassedSocketsRefused: what is not for this process is left alone, and what can't be served is told.
func TestPassedSocketsRefused(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for _, test := range []struct{ name, pid, fds, fault string }{
		{"none", "", "", ""},
		{"another process's", "1", "1", ""},
		{"a number that is none", own, "x", "LISTEN_FDS"},
		{"too many", own, "3", "LISTEN_FDS"},
		{"no socket", own, "0", ""},
	} {
		env := map[string]string{"LISTEN_PID": test.pid, "LISTEN_FDS": test.fds}
		public, admin, err := passed(func(name string) string { return env[name] })
		if public != nil || admin != nil || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: got %v, %v, %v", test.name, public, admin, err)
		}
	}
}
