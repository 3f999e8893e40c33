package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

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
			cfg := config(t, func(_ context.Context, route, body string) (int, string, error) {
				switch {
				case route == "/settle":
					cancel()
					return 200, settledAll(body), nil
				case claimed.Swap(true):
					<-ctx.Done()
					return 200, noJobs, nil
				}
				return 200, `{"jobs":[{"id":"job_1","attempt":3}]}`, nil
			}, 1, shell(test.command))
			log, got := newLog()
			cfg.Drain, cfg.Log = time.Hour, log
			if err := Run(ctx, cfg); err != nil {
				t.Error(err)
			}
			equal(t, "log", got.String(), test.want+"\n")
		})
	}
}

// TestLogOfThrottles: the log says why a provider was throttled.
func TestLogOfThrottles(t *testing.T) {
	t.Parallel()
	w, tasks, log := newWorker(1, func(_ context.Context, _, body string) (int, string, error) {
		return 200, settledAll(body), nil
	})
	w.settle(t.Context(), settlements(tasks, Throttled{Message: "the provider answered 503"}))
	equal(t, "log", log.String(), `{"level":"INFO","msg":"job","id":"job_0","attempt":1,"outcome":"throttled","state":"settled",`+
		`"message":"the provider answered 503"}`+"\n")
}

// TestLogOfTheEnd: the log says at once why a worker ends that must wait for its jobs.
func TestLogOfTheEnd(t *testing.T) {
	t.Parallel()
	w, _, log := newWorker(2, nil)
	for range 2 {
		w.fail(errors.New("the token was revoked"))
	}
	equal(t, "log", log.String(),
		`{"level":"ERROR","msg":"claiming no more jobs; ending after those in progress","jobs":2,"error":"the token was revoked"}`+"\n")
}

// TestLogOfLostSettlements: the log names each job that was not settled, 50 in a line.
func TestLogOfLostSettlements(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, tasks, got := newWorker(120, func(context.Context, string, string) (int, string, error) {
		return 0, "", errors.New("no connection")
	})
	w.settle(ctx, settlements(tasks, Released{}))
	var want string
	for part := range slices.Chunk(attempts(tasks), 50) {
		list, _ := json.Marshal(part)
		want += fmt.Sprintf(`{"level":"ERROR","msg":"jobs were not settled; they are handed out again when their leases end",`+
			`"jobs":%d,"attempts":%s,"error":"Post \"http://dispatcher/worker/v1/settle\": no connection"}`+"\n", len(part), list)
	}
	equal(t, "log", got.String(), want)
	if w.failure() == nil || len(w.held) > 0 {
		t.Errorf("the worker has the error %v and holds %d jobs, want an error and no jobs", w.failure(), len(w.held))
	}
}
