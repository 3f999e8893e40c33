package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/auth"
	"aiv/gateway/telemetry"
	"aiv/store"
)

// TestLogThatIsNotRead: neither requests nor the end of the process wait for a log that is not read.
func TestLogThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		log := telemetry.NewLogWriter(w)
		own, slogs := telemetry.NewRequestLog(log), slog.New(slog.NewJSONHandler(log, nil))
		began := time.Now()
		for range 10_000 {
			telemetry.LogLine(own, slogs, &auth.Credential{})
			telemetry.LogLine(nil, slogs, &auth.Credential{})
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
		telemetry.LogLine(own, slogs, &auth.Credential{})
		log.Close()
		if n := dropped(log); n != 20_001 {
			t.Errorf("%d of 20,001 lines are counted as dropped", n)
		}
	})
}

func dropped(log *telemetry.LogWriter) (n int) {
	var e telemetry.Exposition
	log.WriteMetrics(context.Background(), &e)
	_, value, _ := strings.Cut(e.String(), "\naiv_log_lines_dropped_total ")
	fmt.Sscan(value, &n)
	return n
}

// TestLogIsComplete: every line is written, whole and in order.
func TestLogIsComplete(t *testing.T) {
	t.Parallel()
	var out refusesEmpty
	log := telemetry.NewLogWriter(&out)
	for i := range 5000 {
		fmt.Fprintf(log, "%d\n", i)
	}
	log.Close()
	lines := strings.Split(out.String(), "\n")
	for i := range 5000 {
		if lines[i] != fmt.Sprint(i) {
			t.Fatalf("line %d is %q", i, lines[i])
		}
	}
	if len(lines) != 5001 || dropped(log) != 0 {
		t.Errorf("%d lines, %d dropped", len(lines)-1, dropped(log))
	}
}

type refusesEmpty struct{ bytes.Buffer }

func (b *refusesEmpty) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, errors.New("an empty write")
	}
	return b.Buffer.Write(p)
}

// TestLinesDuringAWrite: lines that are logged while others are being written do not replace these.
func TestLinesDuringAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		log := telemetry.NewLogWriter(w)
		for _, line := range []string{"first\n", "second\n", "third\n"} {
			fmt.Fprint(log, line)
			time.Sleep(time.Second) // until the first write waits for a reader
		}
		go func() {
			log.Close()
			log.Close() // there is nothing to wait for
			w.Close()
		}()
		began := time.Now()
		got, err := io.ReadAll(r)
		if took := time.Since(began); string(got) != "first\nsecond\nthird\n" || err != nil || took >= time.Second {
			t.Errorf("got %q, %v after %v", got, err, took)
		}
	})
}

// TestLogTo: requests are logged by their own log, internal errors and all requests without such a log by slog, and
// nothing below the level.
func TestLogTo(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for _, test := range []struct {
		level    slog.Level
		err      error
		withOwn  bool
		own, log bool // has the line
	}{
		{slog.LevelInfo, nil, true, true, false},
		{slog.LevelInfo, nil, false, false, true},
		{slog.LevelInfo, failed, true, false, true},
		{slog.LevelWarn, nil, true, false, false},
		{slog.LevelWarn, nil, false, false, false},
		{slog.LevelWarn, failed, true, false, true},
	} {
		var own, log bytes.Buffer
		w := telemetry.NewLogWriter(&own)
		var requests *telemetry.RequestLog
		if test.withOwn {
			requests = telemetry.NewRequestLog(w)
		}
		r := telemetry.Request{ID: "req_1", Route: "none", Method: "GET", Err: test.err}
		r.LogTo(requests, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: test.level})))
		w.Close()
		if (own.Len() > 0) != test.own || (log.Len() > 0) != test.log {
			t.Errorf("%+v: the own log has %q, slog %q", test, own.String(), log.String())
		}
	}
}

// TestLogLineIsJSON: no address or code can break a line of the request log.
func TestLogLineIsJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"127.0.0.1:1", "@", `a"b\c`, "fe80::1%\x00\n\"", "\xff", "é\u2028"} {
		line := telemetry.LogLineFor(text)
		var got struct{ Code, Remote string }
		if err := json.Unmarshal(line, &got); err != nil || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%q is logged as %q: %v", text, line, err)
		}
		if want := strings.ToValidUTF8(text, "\uFFFD"); got.Remote != want || got.Code != want {
			t.Errorf("%q is read back as %q", text, got)
		}
	}
}

// TestLoggedMethod: a key that a client sends as the method is not logged.
func TestLoggedMethod(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{"GET": "GET", "DELETE": "DELETE", "TRACE": "TRACE", "get": "other", "PROPFIND": "other", "aiv_live_secret": "other"} {
		own, slogs := telemetry.LogLinesOf(method)
		for _, line := range [][]byte{own, slogs} {
			var got struct{ Method string }
			if err := json.Unmarshal(line, &got); err != nil || got.Method != want {
				t.Errorf("%s is logged as %s (%v), want the method %s", method, line, err, want)
			}
		}
	}
}

// BenchmarkRequestLog compares the encoding of the log of requests with that of slog, which encodes the same line.
func BenchmarkRequestLog(b *testing.B) {
	credential := &auth.Credential{ID: store.NewID()}
	slogs := slog.New(slog.NewJSONHandler(io.Discard, nil))
	for way, line := range map[string]func(){
		"own":  telemetry.LogLineByOwn(credential),
		"slog": func() { telemetry.LogLine(nil, slogs, credential) },
	} {
		b.Run(way, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				line()
			}
		})
	}
}
