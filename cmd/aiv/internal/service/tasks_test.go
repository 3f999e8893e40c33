package service

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aiv/gateway/telemetry"
	"aiv/store/task"

	"github.com/google/go-cmp/cmp"
)

var errDown = errors.New("no connection")

// TestWriteTasks checks the metrics of tasks. One that has not succeeded yet has no time of its latest success.
func TestWriteTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := task.NewRunner(slog.New(slog.DiscardHandler), []task.Task{
			{Name: "fails", Every: time.Minute, Prompt: true, Run: func(context.Context) error { return errDown }},
			{Name: "succeeds", Every: time.Minute, Prompt: true, Run: func(context.Context) error { return nil }},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		r.Run(ctx)
		var page telemetry.Exposition
		writeTasks(r)(t.Context(), &page)
		var got []string
		for line := range strings.Lines(page.String()) {
			if !strings.HasPrefix(line, "#") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		want := []string{
			`aiv_task_runs_total{task="fails",result="succeeded"} 0`,
			`aiv_task_runs_total{task="fails",result="failed"} 2`,
			`aiv_task_runs_total{task="succeeds",result="succeeded"} 2`,
			`aiv_task_runs_total{task="succeeds",result="failed"} 0`,
			`aiv_task_last_success_timestamp_seconds{task="succeeds"} 9.4668492e+08`, // 2 min after 2000-01-01
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("samples (-want +got):\n%s", diff)
		}
	})
}

// TestLogRows checks that rows are logged also if a run fails after some of them, and not if there are none.
func TestLogRows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rows int64
		err  error
		want string
	}{
		{0, nil, ""},
		{0, errDown, ""},
		{3, nil, "level=INFO msg=purged rows=3\n"},
		{3, errDown, "level=INFO msg=purged rows=3\n"},
	} {
		var log strings.Builder
		purge := func(context.Context) (int64, error) { return test.rows, test.err }
		err := logRows(slog.New(slog.NewTextHandler(&log, nil)), "purged", purge)(t.Context())
		_, got, _ := strings.Cut(log.String(), " ") // after the time
		if err != test.err || got != test.want {
			t.Errorf("%d rows, %v: got %v, log %q", test.rows, test.err, err, got)
		}
	}
}
