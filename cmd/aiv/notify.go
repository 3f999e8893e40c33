package main

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

// A notifier tells systemd how the program fares [sd_notify(3)], if that started it and asked to be told (Type=notify).
//
// [sd_notify(3)]: https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
type notifier struct {
	socket   string        // "": nobody asked
	watchdog time.Duration // 0: nobody watches
}

// newNotifier reads what systemd asks for, and takes it out of the environment, so that no child takes it for its own.
func newNotifier() (*notifier, error) {
	n := &notifier{socket: os.Getenv("NOTIFY_SOCKET")}
	text, pid := os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
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

func (n *notifier) tell(state string) error {
	if n.socket == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", n.socket) // a leading @ means the abstract namespace to net, too
	if err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return errors.Join(err, conn.Close())
}

// watch tells that the program lives, twice in the time in which it must, until ctx is done. It tells so only when the
// program has just answered a request of its own: one that hangs is started again. An outage of the database is no reason
// to be, so what is asked is /livez.
func (n *notifier) watch(ctx context.Context, admin net.Addr, log *slog.Logger) {
	if n.watchdog == 0 {
		return
	}
	every := n.watchdog / 2
	client := &http.Client{Timeout: every, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := lives(ctx, client, "http://"+admin.String()+"/livez")
		if err == nil {
			err = n.tell("WATCHDOG=1")
		}
		if err != nil && ctx.Err() == nil {
			log.Error("the watchdog was not told", "error", err)
		}
	}
}

func lives(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/livez says %s", answer.Status)
	}
	return nil
}
