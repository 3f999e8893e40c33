package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runFor runs tasks for a time, and returns their counts and their log, which has no times.
func runFor(t *testing.T, d time.Duration, tasks ...Task) ([]Count, string) {
	t.Helper()
	b := new(bytes.Buffer) // the handler locks it
	log := slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(d, cancel)
	r := NewRunner(log, tasks)
	r.Run(ctx)
	return r.Counts(), b.String()
}

// startsOf returns when the runs of a task start. The first runs take the given times.
func startsOf(t *testing.T, d time.Duration, task Task, takes ...time.Duration) (starts []time.Duration) {
	t.Helper()
	began, running := time.Now(), false
	task.Run = func(context.Context) error {
		if running {
			t.Error("two runs overlap")
		}
		running = true
		starts = append(starts, time.Since(began))
		if n := len(starts); n <= len(takes) {
			time.Sleep(takes[n-1])
		}
		running = false
		return nil
	}
	runFor(t, d, task)
	return starts
}

// equal reports a difference between two values, which what describes.
func equal[T any](t *testing.T, want, got T, what ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", fmt.Sprint(what...), diff)
	}
}

// TestPromptRuns: the runs of a prompt task start exactly at its intervals. A run that takes longer is followed by the
// next one at once, and by no other.
func TestPromptRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
		equal(t, want, startsOf(t, 3500*time.Millisecond, Task{Every: time.Second, Prompt: true}), "starts")
		slow := Task{Every: 10 * time.Second, Prompt: true, Timeout: time.Minute}
		want = []time.Duration{10 * time.Second, 35 * time.Second, 60 * time.Second, 70 * time.Second, 80 * time.Second}
		equal(t, want, startsOf(t, 85*time.Second, slow, 25*time.Second, 25*time.Second), "starts after slow runs")
	})
}

// TestWake: a task that is woken runs at once, or when its run in progress has ended, and again at its interval.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		for _, after := range []time.Duration{3 * time.Second, 12 * time.Second} {
			time.AfterFunc(after, func() { wake <- struct{}{} })
		}
		want := []time.Duration{3 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second}
		task := Task{Every: 10 * time.Second, Prompt: true, Wake: wake}
		equal(t, want, startsOf(t, 25*time.Second, task, time.Second, 5*time.Second), "starts")
	})
}

// TestRunsVary: the runs of a task that is not prompt start after a delay, and at intervals that vary by a tenth.
func TestRunsVary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := startsOf(t, 1000*time.Minute, Task{Every: time.Minute})
		if starts[0] < time.Second || starts[0] > 2*time.Second {
			t.Errorf("the first run started after %v, want 1s to 2s", starts[0])
		}
		var intervals []time.Duration
		for i, s := range starts[1:] {
			intervals = append(intervals, s-starts[i])
		}
		shortest, longest := slices.Min(intervals), slices.Max(intervals)
		if shortest < 54*time.Second || longest > 66*time.Second || shortest > 58*time.Second || longest < 62*time.Second {
			t.Errorf("intervals of %v to %v, want 54s to 66s", shortest, longest)
		}
	})
}

// TestRunHasADeadline: a run has a deadline, by default the interval, and fails if it exceeds that.
func TestRunHasADeadline(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var took []time.Duration
			run := func(ctx context.Context) error {
				began := time.Now()
				<-ctx.Done()
				took = append(took, time.Since(began))
				return ctx.Err()
			}
			counts, log := runFor(t, 20500*time.Millisecond,
				Task{Name: "slow", Every: 10 * time.Second, Prompt: true, Timeout: timeout, Run: run})
			equal(t, want, took[0], "time that the first run took")
			equal(t, []Count{{Name: "slow", Failed: 1}}, counts, "counts")
			const line = `level=WARN msg="task failed; will retry" task=slow failures=1 error="context deadline exceeded"` + "\n"
			equal(t, line, log, "log")
		})
	}
}

// TestFailuresAreCountedAndLogged: of a row of runs that fail the first is logged, then one a minute, and the end of
// the row.
func TestFailuresAreCountedAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		runs := 0
		run := func(context.Context) error {
			if runs++; runs == 1 || runs > 126 {
				return nil
			}
			return errors.New("no connection")
		}
		counts, log := runFor(t, 130500*time.Millisecond, Task{Name: "purge", Every: time.Second, Prompt: true, Run: run})
		want := []Count{{Name: "purge", Succeeded: 5, Failed: 125, LastSuccess: began.Add(130 * time.Second)}}
		equal(t, want, counts, "counts")
		const failed = `level=WARN msg="task failed; will retry" task=purge failures=`
		const reason = ` error="no connection"` + "\n"
		equal(t, failed+"1"+reason+failed+"61"+reason+failed+"121"+reason+
			"level=INFO msg=\"task succeeds again\" task=purge failures=125\n", log, "log")
	})
}

// TestRunInProgressIsWaitedFor: Run waits for a run in progress, whose context is done. An interrupted run is not
// a failure.
func TestRunInProgressIsWaitedFor(t *testing.T) {
	for err, succeeded := range map[error]uint64{context.Canceled: 0, nil: 1} {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			run := func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				ended = true
				return err
			}
			counts, log := runFor(t, 90*time.Second, Task{Name: "x", Every: time.Minute, Prompt: true, Run: run})
			if !ended {
				t.Error("Run returned before the run in progress")
			}
			if got := counts[0]; got.Succeeded != succeeded || got.Failed != 0 || log != "" {
				t.Errorf("the run ended with %v: got %+v and the log %q", err, got, log)
			}
		})
	}
}

// TestTasksAreIndependent: a task that hangs delays no other.
func TestTasksAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}
		counts, _ := runFor(t, 10500*time.Millisecond,
			Task{Name: "hangs", Every: time.Second, Prompt: true, Timeout: time.Hour, Run: hang},
			Task{Name: "other", Every: time.Second, Prompt: true, Run: func(context.Context) error { return nil }})
		if counts[0].Succeeded != 0 || counts[1].Succeeded != 10 {
			t.Errorf("got %+v", counts)
		}
	})
}
