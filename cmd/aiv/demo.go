package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"

	"aiv/cmd/aiv/internal/demo"
	"aiv/gateway"
	"aiv/store"
)

func demoCommand(ctx context.Context, c *call) error {
	c.databaseFlags()
	options := c.serveFlags()
	if _, err := c.Parse(); err != nil {
		return err
	}
	o, err := options()
	if err != nil {
		return err
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	log := c.logger(o.level)
	pool, closeDatabase, err := openDatabase(ctx, source, int32(o.maxConns), log)
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
		Base: scheme + "://" + public.Addr().String() + gateway.Base, Admin: "http://" + admin.Addr().String(), Key: key,
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
