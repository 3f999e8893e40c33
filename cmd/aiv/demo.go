package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"

	"aiv/cmd/aiv/internal/demo"
	"aiv/gateway"
	"aiv/store"
	"aiv/store/private"
)

func demoCommand(ctx context.Context, c *call) error {
	dataDir := c.Flags.String("data-dir", "", "the `FOLDER` for the sample data: new, empty or of an earlier start (environment: AIV_DATA_DIR; default: $XDG_DATA_HOME/aiv-demo)")
	c.Flags.String("database-url", "", "refused: the `URL` of a database must not be filled with sample data")
	options := c.serveFlags()
	if _, err := c.Parse(); err != nil {
		return err
	}
	o, err := options()
	if err != nil {
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
	if dir, err = demo.PrepareFolder(dir); err != nil {
		return err
	}
	log := c.logger(&o)
	defer surviveSignals(log)()
	defer o.logs.Close()
	pool, closeDatabase, err := openDatabase(ctx, databaseSource{dir: dir}, int32(o.maxConns-o.readConns()), log)
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
	public, admin, err := o.listenOnFreePorts(ctx)
	if err != nil {
		return err
	}
	scheme := "http"
	if o.tlsCert != "" {
		scheme = "https"
	}
	err = demo.WriteText(c.Stdout, demo.Service{
		Base: scheme + "://" + public.Addr().String() + gateway.Base, Admin: "http://" + admin.Addr().String(), Key: key, Data: dir,
	})
	if err != nil {
		return err
	}
	return o.serve(ctx, pool, slog.New(withoutRequests{log.Handler()}), public, admin)
}

// listenOnFreePorts uses a free port where a default port is in use.
func (o *serveOptions) listenOnFreePorts(ctx context.Context) (public, admin net.Listener, err error) {
	public, admin, err = o.listen(ctx)
	if !errors.Is(err, syscall.EADDRINUSE) || o.addr != defaultAddr && o.adminAddr != defaultAdminAddr {
		return public, admin, err
	}
	if o.addr == defaultAddr {
		o.addr = "127.0.0.1:0"
	}
	if o.adminAddr == defaultAdminAddr {
		o.adminAddr = "127.0.0.1:0"
	}
	return o.listen(ctx)
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
