package systemd

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aiv/store/storetest"
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

// TestWatchdogByAUnixSocket: the watchdog is notified also when the admin listener is a Unix socket, but not when
// /livez fails.
func TestWatchdogByAUnixSocket(t *testing.T) {
	dir := t.TempDir()
	admin, err := net.Listen("unix", dir+"/admin")
	storetest.Must(t, err)
	var served atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if served.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	go server.Serve(admin)
	defer server.Close()
	watchdog, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: dir + "/notify", Net: "unixgram"})
	storetest.Must(t, err)
	defer watchdog.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := &Notifier{socket: dir + "/notify", watchdog: 400 * time.Millisecond}
	go n.Watch(ctx, admin.Addr(), slog.New(slog.DiscardHandler))
	got := make([]byte, 100)
	watchdog.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := watchdog.Read(got); err != nil || string(got[:n]) != "WATCHDOG=1" {
		t.Errorf("got %q, %v", got[:n], err)
	}
	if n := served.Load(); n < 2 { // more on a slow machine, where a check may be too late
		t.Errorf("notified after %d checks, of which the first failed", n)
	}
}

// TestListenersRefused: sockets of another process are ignored, and sockets that can't be served are reported.
func TestListenersRefused(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for name, test := range map[string]struct{ pid, fds, fault string }{
		"none":              {"", "", ""},
		"another process's": {"1", "1", ""},
		"not a number":      {own, "x", "LISTEN_FDS"},
		"too many":          {own, "3", "LISTEN_FDS"},
		"no sockets":        {own, "0", ""},
	} {
		env := map[string]string{"LISTEN_PID": test.pid, "LISTEN_FDS": test.fds}
		public, admin, err := Listeners(func(name string) string { return env[name] })
		if public != nil || admin != nil || (err == nil) != (test.fault == "") || err != nil && !strings.Contains(err.Error(), test.fault) {
			t.Errorf("%s: got %v, %v, %v", name, public, admin, err)
		}
	}
}
