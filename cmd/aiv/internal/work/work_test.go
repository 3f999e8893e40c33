package work

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestLaterAttempt: a worker that gets a job again, because the lease of its first attempt has ended, ends the command of the first.
func TestLaterAttempt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	await := func(file string) {
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return
			}
		}
		t.Errorf("the first command has not %s", file)
	}
	var claims atomic.Int64
	settled := make(chan int64, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		switch strings.TrimPrefix(r.URL.Path, "/worker/v1") {
		case "/claim":
			switch n := claims.Add(1); {
			case n > 2:
				<-time.After(20 * time.Millisecond)
				fmt.Fprint(w, `{"jobs":[]}`)
			case n == 2:
				await("started")
				fallthrough
			default:
				fmt.Fprintf(w, `{"jobs":[{"id":"job_1","attempt":%d}]}`, n)
			}
		case "/settle":
			var body struct{ Jobs []struct{ Attempt int64 } }
			json.Unmarshal(text, &body)
			for _, j := range body.Jobs {
				settled <- j.Attempt
			}
			fmt.Fprint(w, `{"jobs":[{"state":"settled"}]}`)
		}
	}))
	t.Cleanup(server.Close)
	const command = `
case $(cat) in
*'"attempt":1'*) trap 'echo >"$0/ended"; exit' TERM; echo >"$0/started"; sleep 600 & wait ;;
*) exit 75 ;;
esac`
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{
			URL: server.URL, Token: "x", Parallel: 2, Lease: time.Hour, Hurry: context.Background(), Log: slog.New(slog.DiscardHandler),
			Command: []string{"sh", "-c", command, dir},
		})
	}()
	await("ended")
	select {
	case got := <-settled:
		if got != 2 {
			t.Errorf("attempt %d was settled, want 2", got)
		}
	case <-time.After(30 * time.Second):
		t.Error("no attempt was settled")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLastSettlementsAreLost: a worker that could not report the results of its last commands does not end as if it had.
func TestLastSettlementsAreLost(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var claimed, tried atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch strings.TrimPrefix(r.URL.Path, "/worker/v1") {
		case "/claim":
			if claimed.Swap(true) {
				fmt.Fprint(w, `{"jobs":[]}`)
			} else {
				fmt.Fprint(w, `{"jobs":[{"id":"job_1","attempt":1}]}`)
			}
		case "/settle":
			tried.Store(true)
			cancel()
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	err := Run(ctx, Config{
		URL: server.URL, Token: "x", Parallel: 1, Lease: time.Hour, Hurry: context.Background(), Log: slog.New(slog.DiscardHandler),
		Command: []string{"sh", "-c", "exit 75"}, settleTime: 100 * time.Millisecond,
	})
	if err == nil || !tried.Load() {
		t.Errorf("the worker ended with %v, want an error because its result was not settled", err)
	}
}
