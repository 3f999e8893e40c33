package task_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"aiv/store/storetest"
	"aiv/store/task"
)

// runFor runs tasks for a time, and returns their counts and their log, which has no times.
func runFor(t *testing.T, d time.Duration, tasks ...task.Task) ([]task.Count, string) {
	t.Helper()
	b := new(bytes.Buffer) // the handler locks it
	withoutTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(d, cancel)
	r := task.NewRunner(log, tasks)
	r.Run(ctx)
	return r.Counts(), b.String()
}

// startsOf returns when the runs of a task start. The first runs take the given times.
func startsOf(t *testing.T, d time.Duration, task task.Task, takes ...time.Duration) (starts []time.Duration) {
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

// TestPromptRuns: the runs of a prompt task start exactly at its intervals. A run that takes longer is followed by the
// next one at once, and by no other. A task that is woken runs at once, or when its run in progress has ended, and again
// at its interval.
func TestPromptRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := task.Task{Every: 10 * time.Second, Prompt: true, Timeout: time.Minute}
		want := []time.Duration{10 * time.Second, 35 * time.Second, 60 * time.Second, 70 * time.Second, 80 * time.Second}
		storetest.Equal(t, want, startsOf(t, 85*time.Second, slow, 25*time.Second, 25*time.Second), "starts after slow runs")

		wake := make(chan struct{}, 1)
		for _, after := range []time.Duration{3 * time.Second, 12 * time.Second} {
			time.AfterFunc(after, func() { wake <- struct{}{} })
		}
		want = []time.Duration{3 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second}
		task := task.Task{Every: 10 * time.Second, Prompt: true, Wake: wake}
		storetest.Equal(t, want, startsOf(t, 25*time.Second, task, time.Second, 5*time.Second), "starts of a task that is woken")
	})
}

// TestRunsAreBounded: a run has a deadline, by default the interval, and fails if it exceeds that. A task that hangs
// delays no other.
func TestRunsAreBounded(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var took []time.Duration
			hang := func(ctx context.Context) error {
				began := time.Now()
				<-ctx.Done()
				took = append(took, time.Since(began))
				return ctx.Err()
			}
			began := time.Now()
			counts, _ := runFor(t, 20500*time.Millisecond,
				task.Task{Name: "hangs", Every: 10 * time.Second, Prompt: true, Timeout: timeout, Run: hang},
				task.Task{Name: "other", Every: time.Second, Prompt: true, Run: func(context.Context) error { return nil }})
			storetest.Equal(t, want, took[0], "time that the first run took")
			last := began.Add(20 * time.Second)
			storetest.Equal(t, []task.Count{{Name: "hangs", Failed: 1}, {Name: "other", Succeeded: 20, LastSuccess: last}}, counts, "counts")
		})
	}
}

// TestFailuresAreLogged: of a row of runs that fail the first is logged, then one a minute, and the end of the row.
func TestFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		run := func(context.Context) error {
			if runs++; runs == 1 || runs > 126 {
				return nil
			}
			return errors.New("no connection")
		}
		_, log := runFor(t, 130500*time.Millisecond, task.Task{Name: "purge", Every: time.Second, Prompt: true, Run: run})
		const failed = `level=WARN msg="task failed; will retry" task=purge failures=`
		const reason = ` error="no connection"` + "\n"
		storetest.Equal(t, failed+"1"+reason+failed+"61"+reason+failed+"121"+reason+
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
			counts, log := runFor(t, 90*time.Second, task.Task{Every: time.Minute, Prompt: true, Run: run})
			if got := counts[0]; !ended || got.Succeeded != succeeded || got.Failed != 0 || log != "" {
				t.Errorf("the run ended, %v, with %v: got %+v and the log %q", ended, err, got, log)
			}
		})
	}
}
