package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/demo"
	"aiv/cmd/aiv/internal/service"
	"aiv/gateway"
	"aiv/store/private"
	"aiv/store/schema"
)

func demoCommand(ctx context.Context, c *call) error {
	dataDir := c.Flags.String("data-dir", "", "the `FOLDER` of the sample data: a new or empty one, or one that aiv demo made (environment: AIV_DATA_DIR; default: $XDG_DATA_HOME/aiv-demo)")
	c.Flags.String("database-url", "", "rejected: aiv demo writes its sample data to no other database than its own, whatever the `URL`")
	workerAddr := c.Flags.String("worker-addr", "", "listen for workers on this `HOST:PORT` (environment: AIV_WORKER_ADDR; default: 127.0.0.1:8081)")
	var o service.Serve
	check := o.Flags(c.Call)
	if _, err := c.Parse(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	dispatchAddr := cmp.Or(*workerAddr, c.Getenv("AIV_WORKER_ADDR"))
	if dispatchAddr != "" {
		if err := service.CheckAddress(c.Call, service.WorkerAddrFlag, dispatchAddr); err != nil {
			return err
		}
	}
	if c.Given("database-url") || c.Getenv("DATABASE_URL") != "" {
		return c.Wrong("aiv demo never writes to another database; unset DATABASE_URL and leave -database-url out, or run aiv serve")
	}
	dir := cmp.Or(*dataDir, c.Getenv("AIV_DATA_DIR"))
	if dir == "" {
		operators, err := private.DefaultDataDir()
		if err != nil {
			return err
		}
		dir = operators + "-demo"
	}
	dir, release, err := demo.PrepareFolder(dir)
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := service.EndOnHangup(ctx)
	defer stop()
	defer service.SurvivePipe()()
	log, endLog := o.Logger(c.Call)
	defer endLog()
	pool, closeDatabase, err := openDatabase(ctx, databaseSource{dir: dir}, o.WriteConns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	counts, err := service.OpenCounts(ctx, pool)
	if err != nil {
		return err
	}
	defer counts.Close()
	if _, err := schema.Migrate(ctx, pool); err != nil {
		return err
	}
	secrets, err := demo.Fill(ctx, pool)
	if err != nil {
		return err
	}
	l, err := o.ListenOnFreePorts(ctx)
	if err != nil {
		return err
	}
	o.AllowPrivateWebhooks()
	dispatch := service.SampleDispatch(&o, dispatchAddr)
	dispatch.Beside = demo.Work
	workers, err := dispatch.ListenOnFreePorts(ctx)
	if err != nil {
		return err
	}
	scheme := "http"
	if o.TLS() {
		scheme = "https"
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	err = demo.WriteText(c.Stdout, demo.Service{
		Base: scheme + "://" + l.Main.Addr().String() + gateway.Base, Admin: "http://" + l.Admin.Addr().String(), Secrets: secrets, Data: dir,
		Workers: "http://" + workers.Main.Addr().String(), Program: program,
	})
	if err != nil {
		return err
	}
	config := pool.Config()
	config.MaxConns = dispatch.Conns()
	dispatchPool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer dispatchPool.Close()

	service.Tune(pool, service.ServePercent)

	// Both end when one of them does.
	log = slog.New(withoutRequests{log.Handler()})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- dispatch.Run(ctx, dispatchPool, log, workers) }()
	go func() { ended <- o.Run(ctx, pool, counts, log, l) }()
	first := <-ended
	cancel()
	return errors.Join(first, <-ended)
}

// withoutRequests drops the log lines of successful requests, so that the printed instructions stay visible.
type withoutRequests struct{ slog.Handler }

// Handle implements slog.Handler.
func (h withoutRequests) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn && r.Message == "request" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
