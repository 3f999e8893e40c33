package work

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newLog returns a log that writes JSON without times. The handler locks its buffer.
func newLog() (*slog.Logger, *bytes.Buffer) {
	b := new(bytes.Buffer)
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), b
}

// TestLogOfJobs: the log has a line for a claim that got jobs, and one that says how a job ended, and why if it did not
// succeed.
func TestLogOfJobs(t *testing.T) {
	t.Parallel()
	const claim = `{"level":"INFO","msg":"claimed","jobs":1,"attempts":[{"id":"job_1","attempt":3}]}`
	const job = claim + "\n" + `{"level":"INFO","msg":"job","id":"job_1","attempt":3,`
	for _, test := range []struct{ command, want string }{
		{`echo '{}'`, job + `"outcome":"completed","state":"settled"}`},
		{`echo first >&2; echo last >&2; exit 3`, job + `"outcome":"failed","state":"settled","code":"exit_3","message":"last"}`},
		{`exit 3`, job + `"outcome":"failed","state":"settled","code":"exit_3","message":""}`},
		{`echo later >&2; exit 75`, job + `"outcome":"retry","state":"settled","code":"temporary","message":"later"}`},
		{`echo '{"text":"a","text":"b"}'`, job + `"outcome":"failed","state":"settled","code":"invalid_answer","message":"the output is not strict JSON: at byte 12: member \"text\" appears twice"}`},
		{`kill -9 $$`, job + `"outcome":"failed","state":"settled","code":"exit_137","message":""}`},
		{`:`, job + `"outcome":"failed","state":"settled","code":"invalid_answer","message":"the output is empty"}`},
		{`head -c 5242881 /dev/zero`, job + `"outcome":"failed","state":"settled","code":"invalid_answer","message":"the output is longer than 5242880 bytes"}`},
		{`echo no`, job + `"outcome":"failed","state":"settled","code":"invalid_answer","message":"the output is not JSON"}`},
	} {
		t.Run(test.command, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			var claimed atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.ReadAll(r.Body)
				switch strings.TrimPrefix(r.URL.Path, "/worker/v1") {
				case "/claim":
					if claimed.Swap(true) {
						<-ctx.Done()
						fmt.Fprint(w, `{"jobs":[]}`)
					} else {
						fmt.Fprint(w, `{"jobs":[{"id":"job_1","attempt":3}]}`)
					}
				case "/settle":
					fmt.Fprint(w, `{"jobs":[{"state":"settled"}]}`)
					cancel()
				}
			}))
			t.Cleanup(server.Close)
			log, got := newLog()
			if err := Run(ctx, Config{
				URL: server.URL, Token: "x", Parallel: 1, Lease: time.Hour, Drain: time.Hour, Kill: context.Background(), Log: log,
				Executor: Command{Args: []string{"sh", "-c", test.command}},
			}); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want+"\n", got.String()); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLogOfLostSettlements: the log names each job that was not settled, 50 in a line.
func TestLogOfLostSettlements(t *testing.T) {
	t.Parallel()
	log, got := newLog()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, tasks := newWorker("http://127.0.0.1:1", log, 120)
	var batch []settlement
	for _, tk := range tasks {
		batch = append(batch, newSettlement(tk, Released{}))
	}
	w.settle(ctx, batch)
	var logged []attempt
	for line := range strings.Lines(got.String()) {
		var l struct {
			Level, Error string
			Jobs         int
			Attempts     []attempt
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Level != "ERROR" || l.Error == "" || l.Jobs != len(l.Attempts) || l.Jobs > 50 {
			t.Errorf("the log has the line %s", line)
		}
		logged = append(logged, l.Attempts...)
	}
	if diff := cmp.Diff(attempts(tasks), logged); diff != "" {
		t.Errorf("attempts in the log (-want +got):\n%s", diff)
	}
	if w.failure() == nil || len(w.held) > 0 {
		t.Errorf("the worker has the error %v and holds %d jobs, want an error and no jobs", w.failure(), len(w.held))
	}
}
