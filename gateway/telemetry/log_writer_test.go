package telemetry

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
	"aiv/store"
)

func exampleOf(credential *auth.Credential) *Request {
	return &Request{ID: "req_01m7xrd2hnfc7awpmyb9yh7w5x", Method: "GET", Route: "GET /v1/me", Status: 200,
		Took: 1234567, RoundTrips: 1, Remote: "127.0.0.1:50000", Credential: credential}
}

// TestLogThatIsNotRead: neither requests nor the end of the process wait for a log that is not read.
func TestLogThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		log := NewLogWriter(w)
		slogs := slog.New(slog.NewJSONHandler(log, nil))
		request := exampleOf(&auth.Credential{})
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

func dropped(log *LogWriter) (n int) {
	var e Exposition
	log.WriteMetrics(context.Background(), &e)
	_, value, _ := strings.Cut(e.String(), "\naiv_log_lines_dropped_total ")
	fmt.Sscan(value, &n)
	return n
}

// TestLogIsComplete: every line is written, whole and in order.
func TestLogIsComplete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // Close waits for a second only
		var out refusesEmpty
		var want strings.Builder
		log := NewLogWriter(&out)
		for i := range 5000 {
			fmt.Fprintf(io.MultiWriter(log, &want), "%d\n", i)
		}
		log.Close()
		if out.String() != want.String() || dropped(log) != 0 {
			t.Errorf("%d bytes are written, want %d; %d lines are dropped", out.Len(), want.Len(), dropped(log))
		}
	})
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
		log := NewLogWriter(w)
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
		own, log int // lines
	}{
		{slog.LevelInfo, nil, true, 1, 0},
		{slog.LevelInfo, nil, false, 0, 1},
		{slog.LevelInfo, failed, true, 0, 1},
		{slog.LevelWarn, nil, true, 0, 0},
		{slog.LevelWarn, nil, false, 0, 0},
		{slog.LevelWarn, failed, true, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) { // Close waits for a second only
			var own, log bytes.Buffer
			w := NewLogWriter(&own)
			var requests *LogWriter
			if test.withOwn {
				requests = w
			}
			r := Request{ID: "req_1", Route: "none", Method: "GET", Err: test.err}
			r.LogTo(requests, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: test.level})))
			w.Close()
			if strings.Count(own.String(), "\n") != test.own || strings.Count(log.String(), "\n") != test.log {
				t.Errorf("%+v: the own log has %q, slog %q", test, own.String(), log.String())
			}
		})
	}
}

// TestLogLineIsJSON: no address or code can break a line of the log, and a key that a client sends as the method is not
// logged.
func TestLogLineIsJSON(t *testing.T) {
	t.Parallel()
	type line struct{ Code, Remote, Method string }
	check := func(code, method, wantMethod string) {
		t.Helper()
		r := Request{ID: "req_1", Route: "none", Method: method, Code: code, Remote: code}
		var slogs bytes.Buffer
		r.log(slog.New(slog.NewJSONHandler(&slogs, nil)))
		want := line{strings.ToValidUTF8(code, "\uFFFD"), strings.ToValidUTF8(code, "\uFFFD"), wantMethod}
		for _, text := range [][]byte{r.append(nil), slogs.Bytes()} {
			var got line
			if err := json.Unmarshal(text, &got); err != nil || got != want || bytes.Count(text, []byte("\n")) != 1 {
				t.Errorf("got %q, %v; want %q", text, err, want)
			}
		}
	}
	for _, code := range []string{"127.0.0.1:1", "@", `a"b\c`, "fe80::1%\x00\n\"", "\xff", "é\u2028"} {
		check(code, "GET", "GET")
	}
	for _, method := range []string{"DELETE", "TRACE"} {
		check("", method, method)
	}
	for _, method := range []string{"get", "PROPFIND", "aiv_live_secret"} {
		check("", method, "other")
	}
}

// BenchmarkRequestLog compares the encoding of the log of requests with that of slog, which encodes the same line.
func BenchmarkRequestLog(b *testing.B) {
	slogs := slog.New(slog.NewJSONHandler(io.Discard, nil))
	r := exampleOf(&auth.Credential{ID: store.NewID()})
	var own []byte
	for way, line := range map[string]func(){
		"own":  func() { own = r.append(own[:0]) },
		"slog": func() { r.LogTo(nil, slogs) },
	} {
		b.Run(way, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				line()
			}
		})
	}
}
