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

// awaitFile waits for a file until ctx is done, and reports whether it exists.
func awaitFile(ctx context.Context, file string) bool {
	for ; ctx.Err() == nil; <-time.After(5 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// TestLaterAttempt: a worker that gets a job again, because the lease of its first attempt has ended, ends the command
// of the first.
func TestLaterAttempt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	await := func(file string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !awaitFile(ctx, filepath.Join(dir, file)) {
			t.Errorf("the first command has not %s", file)
		}
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
			URL: server.URL, Token: "x", Parallel: 2, Lease: time.Hour, Kill: context.Background(), Log: slog.New(slog.DiscardHandler),
			Executor: Command{Args: []string{"sh", "-c", command, dir}},
		})
	}()
	await("ended")
	select {
	case got := <-settled:
		if got != 2 {
			t.Errorf("attempt %d was settled, want 2", got)
		}
	case <-time.After(time.Minute):
		t.Error("no attempt was settled")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLastSettlementsAreLost: a worker that could not report the results of its last commands does not end as if it
// had.
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
		URL: server.URL, Token: "x", Parallel: 1, Lease: time.Hour, Kill: context.Background(), Log: slog.New(slog.DiscardHandler),
		Executor: Command{Args: []string{"sh", "-c", "exit 75"}}, settleTime: 100 * time.Millisecond,
	})
	if err == nil || !tried.Load() {
		t.Errorf("the worker ended with %v, want an error because its result was not settled", err)
	}
}

// TestEndWhileSettlementsFail: a worker whose results wait for one another, because the dispatcher takes none, claims
// no more jobs. It ends after SIGTERM, at the end of the drain or a second signal, and settles all results if the
// dispatcher takes them by then.
func TestEndWhileSettlementsFail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name        string
		drain       time.Duration
		kill        bool
		recover     bool // settlements succeed after SIGTERM
		settleTime  time.Duration
		wantError   bool
		wantSettled int64
	}{
		{"the drain ends", time.Millisecond, false, false, 100 * time.Millisecond, true, 0},
		{"a second signal", time.Hour, true, false, 100 * time.Millisecond, true, 0},
		{"the dispatcher recovers within the drain", time.Hour, false, true, 0, false, 3},
		{"the dispatcher recovers after the drain", time.Millisecond, false, true, 0, false, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			kill, endKill := context.WithCancel(t.Context())
			var claims, settlements, settled atomic.Int64
			first := make(chan struct{}) // closed at the first settlement
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				switch strings.TrimPrefix(r.URL.Path, "/worker/v1") {
				case "/claim":
					n := claims.Add(1)
					if n == 2 { // the first result leaves the queue, the second fills it, the third waits
						<-first
					}
					fmt.Fprintf(w, `{"jobs":[{"id":"job_%d","attempt":1}]}`, n)
				case "/settle":
					n := settlements.Add(1)
					if n == 1 {
						close(first)
					}
					if test.recover && ctx.Err() != nil {
						var body struct{ Jobs []any }
						json.Unmarshal(text, &body)
						settled.Add(int64(len(body.Jobs)))
						fmt.Fprintf(w, `{"jobs":[%s]}`, strings.Repeat(`,{"state":"settled"}`, len(body.Jobs))[1:])
						return
					}
					w.WriteHeader(http.StatusServiceUnavailable)
					if n >= 3 && claims.Load() >= 3 {
						cancel()
						if test.kill {
							endKill()
						}
					}
				}
			}))
			t.Cleanup(server.Close)
			ended := make(chan error, 1)
			go func() {
				ended <- Run(ctx, Config{
					URL: server.URL, Token: "x", Parallel: 1, Lease: time.Hour, Drain: test.drain, Kill: kill, Log: slog.New(slog.DiscardHandler),
					Executor: Command{Args: []string{"sh", "-c", "exit 75"}}, settleTime: test.settleTime,
				})
			}()
			select {
			case err := <-ended:
				if (err != nil) != test.wantError || settled.Load() != test.wantSettled || claims.Load() != 3 {
					t.Errorf("the worker ended with %v after %d claims, %d jobs settled; want an error: %t, 3 claims, %d settled",
						err, claims.Load(), settled.Load(), test.wantError, test.wantSettled)
				}
			case <-time.After(time.Minute):
				t.Error("the worker had not ended after a minute")
			}
		})
	}
}

// TestDrainWhileClaiming: commands get no more than the drain time after SIGTERM while a claim has no response.
func TestDrainWhileClaiming(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "command")
	ctx, cancel := context.WithCancel(t.Context())
	var claims atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.ReadAll(r.Body)
		switch strings.TrimPrefix(r.URL.Path, "/worker/v1") {
		case "/claim":
			switch claims.Add(1) {
			case 1:
				fmt.Fprint(w, `{"jobs":[{"id":"job_1","attempt":1}]}`)
				return
			case 2:
				awaitFile(r.Context(), file+".started")
				cancel()
				if !awaitFile(r.Context(), file+".terminated") {
					t.Error("the command ran until the claim ended")
				}
			}
			fmt.Fprint(w, `{"jobs":[]}`)
		case "/settle":
			fmt.Fprint(w, `{"jobs":[{"state":"settled"}]}`)
		}
	}))
	t.Cleanup(server.Close)
	if err := Run(ctx, Config{
		URL: server.URL, Token: "x", Parallel: 2, Lease: time.Hour, Kill: context.Background(), Log: slog.New(slog.DiscardHandler),
		Executor: Command{Args: []string{"sh", "-c", `trap 'echo >"$0.terminated"; exit' TERM; echo >"$0.started"; sleep 600 & wait`, file}},
	}); err != nil {
		t.Error(err)
	}
}
