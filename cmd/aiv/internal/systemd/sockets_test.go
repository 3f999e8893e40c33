package systemd

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestListenersRefused: sockets of another process are ignored, and sockets that can't be served are reported.
func TestListenersRefused(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for _, test := range []struct{ name, pid, fds, fault string }{
		{"none", "", "", ""},
		{"another process's", "1", "1", ""},
		{"not a number", own, "x", "LISTEN_FDS"},
		{"too many", own, "3", "LISTEN_FDS"},
		{"no sockets", own, "0", ""},
	} {
		env := map[string]string{"LISTEN_PID": test.pid, "LISTEN_FDS": test.fds}
		public, admin, err := Listeners(func(name string) string { return env[name] })
		if public != nil || admin != nil || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: got %v, %v, %v", test.name, public, admin, err)
		}
	}
}
