package gateway_test

import (
	"bytes"
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
	"aiv/gateway"
)

// TestLogThatNobodyReads: neither requests nor the end of the process wait for a log that is not read.
func TestLogThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		log := gateway.NewLogWriter(w)
		line := gateway.LogLine(gateway.NewRequestLog(log), slog.New(slog.NewJSONHandler(log, nil)), &auth.Credential{})
		began := time.Now()
		for range 10_000 {
			line(true)
			line(false)
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
		line(true)
		log.Close()
		if n := dropped(log); n != 20_001 {
			t.Errorf("%d of 20,001 lines are counted as dropped", n)
		}
	})
}

func dropped(log *gateway.LogWriter) (n int) {
	var e gateway.Exposition
	log.WriteMetrics(nil, &e)
	_, value, _ := strings.Cut(e.String(), "\naiv_log_lines_dropped_total ")
	fmt.Sscan(value, &n)
	return n
}

// TestLogIsComplete: every line is written, whole and in order.
func TestLogIsComplete(t *testing.T) {
	t.Parallel()
	var out slowBuffer
	log := gateway.NewLogWriter(&out)
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

type slowBuffer struct{ bytes.Buffer }

func (b *slowBuffer) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, errors.New("an empty write")
	}
	return b.Buffer.Write(p)
}

// TestLogLineIsJSON: no address, method or code can break a line of the request log.
func TestLogLineIsJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"127.0.0.1:1", "@", `a"b\c`, "fe80::1%\x00\n\"", "\xff", "é\u2028"} {
		line := gateway.LogLineFor(text)
		var got struct{ Method, Code, Remote string }
		if err := json.Unmarshal(line, &got); err != nil || bytes.Count(line, []byte("\n")) != 1 {
			t.Errorf("%q is logged as %q: %v", text, line, err)
		}
		if want := strings.ToValidUTF8(text, "\uFFFD"); got.Remote != want || got.Method != want || got.Code != want {
			t.Errorf("%q is read back as %q", text, got)
		}
	}
}
