package telemetry

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"
)

// A LogWriter writes log lines in the background, many at a time. Write never blocks: when the reader of the log is too
// slow or gone, lines are dropped and counted, and requests go on.
type LogWriter struct {
	w io.Writer

	mu      sync.Mutex
	lines   []byte        // not written yet
	spare   []byte        // the buffer of the previous write
	idle    chan struct{} // closed when the current write ends; nil: none is under way
	dropped uint64        // lines
}

// maxUnwritten bounds the lines that wait to be written, in bytes.
const maxUnwritten = 1 << 20

// NewLogWriter returns a LogWriter to w.
func NewLogWriter(w io.Writer) *LogWriter { return &LogWriter{w: w} }

// Write takes whole lines. It reports success even when it drops them.
func (l *LogWriter) Write(p []byte) (int, error) {
	l.append(func(b []byte) []byte { return append(b, p...) })
	return len(p), nil
}

// append calls line to append one line to the buffer.
func (l *LogWriter) append(line func([]byte) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) > maxUnwritten {
		l.dropped++
		return
	}
	l.lines = line(l.lines)
	// No goroutine is writing the lines, so start one.
	if l.idle == nil {
		l.idle = make(chan struct{})
		go l.write()
	}
}

// A line waits for gather, so that others are written with it. Writing every few lines separately took 6 % of the
// processor time of GET /v1/me. A process that is killed loses the lines that wait.
const gather = 2 * time.Millisecond

// write writes what is collected until nothing is left, and then ends. At most one write runs at a time. It holds l.mu
// except while it sleeps or calls l.w.Write. lines and spare exchange their buffers, so that none is allocated.
func (l *LogWriter) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.lines) > 0 {
		l.mu.Unlock()
		time.Sleep(gather)
		l.mu.Lock()
		out := l.lines
		l.lines = l.spare[:0]
		l.mu.Unlock()
		n, err := l.w.Write(out)
		l.mu.Lock()
		// A write may have been partial; a line that was cut counts as dropped.
		if err != nil {
			l.dropped += uint64(bytes.Count(out[n:], []byte("\n")))
		}
		l.spare = out
	}
	close(l.idle)
	l.idle = nil
}

// Close waits until all lines are written, for at most a second.
func (l *LogWriter) Close() {
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-time.After(time.Second):
	}
}

// WriteMetrics writes the log's metrics.
func (l *LogWriter) WriteMetrics(_ context.Context, e *Exposition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Counter("aiv_log_lines_dropped_total", "Log lines dropped because the log could not be written in time.", float64(l.dropped))
}
