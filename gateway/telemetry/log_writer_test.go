package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogThatIsNotRead: neither requests nor the end of the process wait for a log that is not read.
func TestLogThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		log := NewLogWriter(w)
		slogs := slog.New(slog.NewJSONHandler(log, nil))
		request := Request{ID: "req_1", Method: "GET", Route: "GET /v1/me", Status: 200}
		began := time.Now()
		for range 10_000 {
			request.LogTo(log, slogs)
			request.LogTo(nil, slogs)
		}
		log.Close()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("logging and closing took %v", took)
		}
		if n := dropped(log); n == 0 || n == 20_000 {
			t.Errorf("%d of 20,000 lines are counted as dropped", n)
		}
		r.Close() // a log whose reader has gone
		synctest.Wait()
		request.LogTo(log, slogs)
		log.Close()
		if n := dropped(log); n != 20_001 {
			t.Errorf("%d of 20,001 lines are counted as dropped", n)
		}
	})
}

// dropped returns how many lines the metrics count as dropped.
func dropped(log *LogWriter) (n int) {
	var e Exposition
	log.WriteMetrics(context.Background(), &e)
	_, value, _ := strings.Cut(e.String(), "\naiv_log_lines_dropped_total ")
	fmt.Sscan(value, &n)
	return n
}

// TestLogIsComplete: every line is written, in order, also those that are logged while others are being written. The
// end of the process waits for them.
func TestLogIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		log := NewLogWriter(w)
		var want strings.Builder
		for i := range 30 {
			fmt.Fprintf(io.MultiWriter(log, &want), "%d\n", i)
			if i%10 == 0 {
				time.Sleep(time.Second) // until the first write waits for a reader
			}
		}
		go func() {
			log.Close()
			w.Close()
		}()
		if got, err := io.ReadAll(r); string(got) != want.String() || err != nil || dropped(log) != 0 {
			t.Errorf("got %q, %v; %d lines are dropped", got, err, dropped(log))
		}
	})
}

// TestLogLineIsJSON: no address or code can break a line of the log, and a key that a client sends as the method is not
// logged.
func TestLogLineIsJSON(t *testing.T) {
	t.Parallel()
	type line struct{ Code, Remote, Method string }
	for _, code := range []string{"127.0.0.1:1", "@", `a"b\c`, "fe80::1%\x00\n\"", "\xff", "é\u2028"} {
		for method, logged := range map[string]string{"TRACE": "TRACE", "get": "other", "aiv_live_secret": "other"} {
			r := Request{ID: "req_1", Route: "none", Method: method, Code: code, Remote: code}
			var slogs bytes.Buffer
			r.log(slog.New(slog.NewJSONHandler(&slogs, nil)))
			valid := strings.ToValidUTF8(code, "\uFFFD")
			for _, text := range [][]byte{r.append(nil), slogs.Bytes()} {
				var got line
				err := json.Unmarshal(text, &got)
				if err != nil || got != (line{valid, valid, logged}) || bytes.Count(text, []byte("\n")) != 1 {
					t.Errorf("%q %q: got %q, %v", method, code, text, err)
				}
			}
		}
	}
}
