package delivery

import (
	"context"
	"sync"
	"testing"

	"aiv/insights/webhooks"
	"aiv/store"
	"aiv/store/storetest"
)

// TestStoppedProcess: where a process stops inside a change of an endpoint, outcomes and events wait for the change's
// locks for some seconds only.
func TestStoppedProcess(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, at string // the statement before which the process stops
		change   func(context.Context, *webhooks.Webhooks, *webhooks.Admin, *delivery) error
	}{
		{"create", "INSERT INTO webhook_endpoints", func(ctx context.Context, w *webhooks.Webhooks, _ *webhooks.Admin, a *delivery) error {
			_, _, err := w.Create(ctx, a.endpoint.account.id, "https://b.example/", "", []string{webhooks.All})
			return err
		}},
		{"update", "UPDATE webhook_endpoints", func(ctx context.Context, w *webhooks.Webhooks, _ *webhooks.Admin, a *delivery) error {
			_, err := w.Update(ctx, a.endpoint.account.id, a.endpoint.id, webhooks.Change{Description: new("b")}, maySendAll)
			return err
		}},
		{"test", "INSERT INTO webhook_queues", func(ctx context.Context, w *webhooks.Webhooks, _ *webhooks.Admin, a *delivery) error {
			_, err := w.Test(ctx, a.endpoint.account.id, a.endpoint.id)
			return err
		}},
		{"enable by an operator", "INSERT INTO audit_log", func(ctx context.Context, _ *webhooks.Webhooks, admin *webhooks.Admin, a *delivery) error {
			_, err := admin.Enable(ctx, a.endpoint.id)
			return err
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			a := f.attempt(t)
			stopped, resume, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			h := &hook{sql: test.at, start: func(ctx context.Context) context.Context {
				close(stopped)
				<-resume
				return ctx
			}}
			pool := storetest.WithTracer(t, f.Pool, h)
			goOn := sync.OnceFunc(func() { close(resume) })
			t.Cleanup(goOn)
			w := webhooks.New(webhooks.Config{Pool: pool, Master: f.master, NewID: store.NewID})
			go func() { ended <- test.change(t.Context(), w, &webhooks.Admin{Pool: pool, Actor: "ann"}, a) }()
			select {
			case <-stopped:
			case err := <-ended:
				t.Fatalf("the change did not stop: %v", err)
			}
			d := f.dispatcher()
			storetest.Eventually(t, "the outcome is written", func() bool {
				return d.write(t.Context(), []outcome{newOutcome(a, attemptedURL, result{err: webhooks.ErrorTimeout})}) == nil
			})
			storetest.Eventually(t, "an event is recorded", func() bool {
				_, err := f.tryRecord(t, a.endpoint.account.id, 1)
				return err == nil
			})
			goOn()
			if err := <-ended; err == nil {
				t.Error("the change was made")
			}
		})
	}
}
