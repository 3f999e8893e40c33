// Package systemd implements the service side of systemd's interfaces: readiness and watchdog notifications
// [sd_notify(3)], and listening sockets that were opened before the process started [sd_listen_fds(3)].
//
// [sd_notify(3)]: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
// [sd_listen_fds(3)]: https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html
package systemd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// A Notifier sends the state of the process to systemd if systemd asked for it (Type=notify). The zero Notifier sends
// nothing.
type Notifier struct {
	socket   string        // "": no notifications
	watchdog time.Duration // 0: no watchdog
}

// NewNotifier reads what systemd asks for, and removes it from the environment so that no child process uses it.
func NewNotifier() (*Notifier, error) {
	n := &Notifier{socket: os.Getenv("NOTIFY_SOCKET")}
	text, pid := os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	// A watchdog for another process, such as a parent that started this one, is left to it.
	if text == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return n, nil
	}
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil || us <= 0 {
		return nil, fmt.Errorf("WATCHDOG_USEC is %q, not a number of microseconds", text)
	}
	n.watchdog = time.Duration(us) * time.Microsecond
	return n, nil
}

// notifyTimeout bounds the time that a notification waits while the queue of systemd's socket is full.
const notifyTimeout = 2 * time.Second

// Notify sends a state.
func (n *Notifier) Notify(state string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", n.socket) // net reads a leading @ as the abstract namespace, too
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	conn.SetWriteDeadline(time.Now().Add(notifyTimeout))
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}

// Watch notifies the watchdog twice in each of its intervals until ctx is done, each time after a request to /livez at
// the admin listener was answered: a process that hangs is restarted, one whose database is down is not.
func (n *Notifier) Watch(ctx context.Context, admin net.Addr, log *slog.Logger) {
	if n.watchdog == 0 {
		return
	}
	// sd_watchdog_enabled(3) recommends half of the interval.
	every := n.watchdog / 2
	client := &http.Client{Timeout: every, Transport: &http.Transport{
		// Each check makes a new connection, so it also tests that the listener accepts them.
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { // the listener may be a Unix socket
			return new(net.Dialer).DialContext(ctx, admin.Network(), admin.String())
		},
	}}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := checkLive(ctx, client)
		if err == nil {
			err = n.Notify("WATCHDOG=1")
		}
		if err != nil && ctx.Err() == nil {
			log.Error("watchdog not notified", "error", err)
		}
	}
}

// checkLive requests /livez. The host in the URL is only for the Host header.
func checkLive(ctx context.Context, client *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/livez", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/livez returned %s", response.Status)
	}
	return nil
}
