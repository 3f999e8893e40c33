package main

import (
	"cmp"
	"context"
	"log/slog"

	"aiv/cmd/aiv/internal/demo"
	"aiv/cmd/aiv/internal/service"
	"aiv/gateway"
	"aiv/store"
	"aiv/store/private"
)

func demoCommand(ctx context.Context, c *call) error {
	dataDir := c.Flags.String("data-dir", "", "the `FOLDER` for the sample data: new, empty or of an earlier start (environment: AIV_DATA_DIR; default: $XDG_DATA_HOME/aiv-demo)")
	c.Flags.String("database-url", "", "refused: the `URL` of a database must not be filled with sample data")
	var o service.Serve
	check := o.Flags(c.Call)
	if _, err := c.Parse(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
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
	dir, err := demo.PrepareFolder(dir)
	if err != nil {
		return err
	}
	log, endLog := o.Logger(c.Call)
	defer endLog()
	defer service.SurviveSignals(log)()
	pool, closeDatabase, err := openDatabase(ctx, databaseSource{dir: dir}, o.WriteConns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	if _, err := store.Migrate(ctx, pool); err != nil {
		return err
	}
	key, err := demo.Fill(ctx, pool)
	if err != nil {
		return err
	}
	l, err := o.ListenOnFreePorts(ctx)
	if err != nil {
		return err
	}
	scheme := "http"
	if o.TLS() {
		scheme = "https"
	}
	err = demo.WriteText(c.Stdout, demo.Service{
		Base: scheme + "://" + l.Main.Addr().String() + gateway.Base, Admin: "http://" + l.Admin.Addr().String(), Key: key, Data: dir,
	})
	if err != nil {
		return err
	}
	return o.Run(ctx, pool, slog.New(withoutRequests{log.Handler()}), l)
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
