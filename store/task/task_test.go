package task

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newLog returns a log that writes text without times. The handler locks its buffer.
func newLog() (*slog.Logger, *bytes.Buffer) {
	b := new(bytes.Buffer)
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})), b
}

// runFor runs a task for a time, and returns its counts and its log.
func runFor(t *testing.T, d time.Duration, task Task) (Count, string) {
	t.Helper()
	log, b := newLog()
	r := NewRunner(log, []Task{task})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(d, cancel)
	r.Run(ctx)
	return r.Counts()[0], b.String()
}

// TestRunsStartAtTheirIntervals checks when runs start: those of a prompt task exactly, those of another after a delay and with jitter.
func TestRunsStartAtTheirIntervals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name             string
		prompt           bool
		firstMin, first  time.Duration
		everyMin, every  time.Duration
		wantDifferent    bool
		fewest, runsMost int
	}{
		{"prompt", true, time.Minute, time.Minute, time.Minute, time.Minute, false, 999, 999},
		{"with jitter", false, time.Second, 2 * time.Second, 54 * time.Second, 66 * time.Second, true, 908, 1111},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var starts []time.Duration
				run := func(context.Context) error {
					starts = append(starts, time.Since(began))
					return nil
				}
				runFor(t, 1000*time.Minute-time.Second, Task{Name: "x", Every: time.Minute, Prompt: test.prompt, Run: run})
				if n := len(starts); n < test.fewest || n > test.runsMost {
					t.Fatalf("%d runs, want %d to %d", n, test.fewest, test.runsMost)
				}
				if starts[0] < test.firstMin || starts[0] > test.first {
					t.Errorf("the first run started after %v, want %v to %v", starts[0], test.firstMin, test.first)
				}
				var intervals []time.Duration
				for i, s := range starts[1:] {
					intervals = append(intervals, s-starts[i])
				}
				shortest, longest := slices.Min(intervals), slices.Max(intervals)
				if shortest < test.everyMin || longest > test.every {
					t.Errorf("intervals of %v to %v, want %v to %v", shortest, longest, test.everyMin, test.every)
				}
				if (shortest != longest) != test.wantDifferent {
					t.Errorf("intervals of %v to %v; want jitter: %t", shortest, longest, test.wantDifferent)
				}
			})
		})
	}
}

// TestNoOverlap checks that a run that takes longer than the interval is followed by the next one at once, and by no
// other.
func TestNoOverlap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		running := 0
		var starts []time.Duration
		run := func(context.Context) error {
			starts = append(starts, time.Since(began))
			if running++; running > 1 {
				t.Error("two runs overlap")
			}
			if len(starts) <= 2 {
				time.Sleep(2500 * time.Millisecond)
			}
			running--
			return nil
		}
		runFor(t, 8500*time.Millisecond, Task{Name: "x", Every: time.Second, Prompt: true, Timeout: time.Minute, Run: run})
		want := []time.Duration{1000, 3500, 6000, 7000, 8000}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if diff := cmp.Diff(want, starts); diff != "" {
			t.Errorf("starts (-want +got):\n%s", diff)
		}
	})
}

// TestRunHasADeadline checks that a run has a deadline, by default the interval, and that one that exceeds it fails.
func TestRunHasADeadline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ timeout, want time.Duration }{
		{0, 10 * time.Second},
		{3 * time.Second, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var took []time.Duration
			run := func(ctx context.Context) error {
				began := time.Now()
				<-ctx.Done()
				took = append(took, time.Since(began))
				return ctx.Err()
			}
			got, log := runFor(t, 20500*time.Millisecond,
				Task{Name: "slow", Every: 10 * time.Second, Prompt: true, Timeout: test.timeout, Run: run})
			if took[0] != test.want {
				t.Errorf("the first run ended after %v, want %v", took[0], test.want)
			}
			if got.Failed != 1 || got.Succeeded != 0 {
				t.Errorf("%d runs failed, %d succeeded", got.Failed, got.Succeeded)
			}
			const want = `level=WARN msg="task failed; will retry" task=slow failures=1 error="context deadline exceeded"` + "\n"
			if log != want {
				t.Errorf("log %q, want %q", log, want)
			}
		})
	}
}

// TestFailuresAreCountedAndLogged checks what is counted and logged of runs that fail: the first of a row, one a minute, and the end of
// the row.
func TestFailuresAreCountedAndLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		runs := 0
		run := func(context.Context) error {
			if runs++; runs == 1 || runs > 126 {
				return nil
			}
			return errors.New("no connection")
		}
		got, log := runFor(t, 130500*time.Millisecond, Task{Name: "purge", Every: time.Second, Prompt: true, Run: run})
		want := Count{Name: "purge", Succeeded: 5, Failed: 125, LastSuccess: began.Add(130 * time.Second)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		const failed = `level=WARN msg="task failed; will retry" task=purge failures=`
		const reason = ` error="no connection"` + "\n"
		wantLog := failed + "1" + reason + failed + "61" + reason + failed + "121" + reason +
			"level=INFO msg=\"task succeeds again\" task=purge failures=125\n"
		if diff := cmp.Diff(wantLog, log); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// TestRunInProgressIsWaitedFor checks that Run waits for a run in progress, whose context is done, and that an interrupted run is not a
// failure.
func TestRunInProgressIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		want uint64 // runs that succeeded
	}{
		{"interrupted", context.Canceled, 0},
		{"completed all the same", nil, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ended := false
				run := func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					ended = true
					return test.err
				}
				got, log := runFor(t, 90*time.Second, Task{Name: "x", Every: time.Minute, Prompt: true, Run: run})
				if !ended {
					t.Error("Run returned before the run in progress")
				}
				if got.Succeeded != test.want || got.Failed != 0 || log != "" {
					t.Errorf("got %+v and the log %q", got, log)
				}
			})
		})
	}
}

// TestTasksAreIndependent checks that a task that hangs delays no other.
func TestTasksAreIndependent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log, _ := newLog()
		r := NewRunner(log, []Task{
			{Name: "hangs", Every: time.Second, Prompt: true, Timeout: time.Hour, Run: func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}},
			{Name: "other", Every: time.Second, Prompt: true, Run: func(context.Context) error { return nil }},
		})
		time.AfterFunc(10500*time.Millisecond, cancel)
		r.Run(ctx)
		if got := r.Counts(); got[0].Succeeded != 0 || got[1].Succeeded != 10 {
			t.Errorf("got %+v", got)
		}
	})
}
