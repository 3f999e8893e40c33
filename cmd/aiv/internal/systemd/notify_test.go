package systemd

import (
	"os"
	"testing"
	"time"
)

func TestNewNotifier(t *testing.T) {
	for _, test := range []struct {
		socket, usec, pid string
		want              Notifier
		fails             bool
	}{
		{"", "", "", Notifier{}, false},
		{"/run/x", "", "", Notifier{socket: "/run/x"}, false},
		{"@x", "30000000", "", Notifier{"@x", 30 * time.Second}, false},
		{"@x", "30000000", "1", Notifier{socket: "@x"}, false}, // another process is watched
		{"@x", "soon", "", Notifier{}, true},
		{"@x", "0", "", Notifier{}, true},
	} {
		t.Setenv("NOTIFY_SOCKET", test.socket)
		t.Setenv("WATCHDOG_USEC", test.usec)
		t.Setenv("WATCHDOG_PID", test.pid)
		n, err := NewNotifier()
		if (err != nil) != test.fails || err == nil && *n != test.want {
			t.Errorf("%+v: got %+v, %v", test, n, err)
		}
		if os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv("WATCHDOG_USEC") != "" {
			t.Error("a child process would inherit the watchdog")
		}
	}
}
