package gateway_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"aiv/auth"
	"aiv/gateway"
	"aiv/gateway/worker"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/task"
)

// serveWorkers serves the worker interface on the fixture's database, as aiv dispatch does, and gives the target
// workers: main, which may have the jobs of the model golden/worked, elsewhere, which may have those of another
// provider only, and revoked.
func (f *fixture) serveWorkers(t *testing.T, at *target) {
	t.Helper()
	for name, provider := range map[string]string{"main": "worked", "elsewhere": "pending", "revoked": "worked"} {
		w, token, err := f.auth().CreateWorker(t.Context(), "golden "+name, []string{provider})
		must(t, err)
		at.keys["worker:"+name] = token
		if name == "revoked" {
			_, err := f.auth().RevokeWorker(t.Context(), w.ID)
			must(t, err)
		}
	}
	pool := f.as(t, schema.Dispatch)
	log := slog.New(slog.DiscardHandler)
	dispatcher := jobs.New(jobs.Config{Pool: pool, Timeout: 10 * time.Second, MaxWaiting: 1000, Log: log, Count: gateway.Count()})
	at.dialWorkers = listen(t, worker.New(worker.Config{Jobs: dispatcher, Workers: auth.NewWorkerLookup(pool, 10*time.Second, 100),
		NewID: store.NewID, Timeout: 10 * time.Second, Log: log, Metrics: worker.NewMetrics()}))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { task.NewRunner(log, dispatcher.Tasks()).Run(ctx) })
	t.Cleanup(func() {
		stop()
		dispatcher.Stop()
		running.Wait()
	})
}
