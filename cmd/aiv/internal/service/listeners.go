package service

import (
	"context"
	"errors"
	"net"
	"syscall"

	"aiv/cmd/aiv/internal/systemd"
)

// Listeners are what a service listens at.
type Listeners struct{ Main, Admin net.Listener }

// Close closes those that are open.
func (l Listeners) Close() {
	for _, open := range []net.Listener{l.Main, l.Admin} {
		if open != nil {
			open.Close()
		}
	}
}

// ListenOrTake returns the listeners passed by systemd, and opens those that were not passed.
func (o *Options) ListenOrTake(ctx context.Context, getenv func(string) string) (Listeners, error) {
	public, admin, err := systemd.Listeners(getenv)
	if err != nil {
		return Listeners{}, err
	}
	return o.listen(ctx, Listeners{public, admin})
}

// listen opens the listeners that l lacks.
func (o *Options) listen(ctx context.Context, l Listeners) (Listeners, error) {
	var config net.ListenConfig
	var err error
	if l.Main == nil {
		l.Main, err = config.Listen(ctx, "tcp", o.addr)
	}
	if err == nil && l.Admin == nil {
		l.Admin, err = config.Listen(ctx, "tcp", o.adminAddr)
	}
	if err != nil {
		l.Close()
		return Listeners{}, err
	}
	return l, nil
}

// ListenOnFreePorts opens the listeners, on a free port where a default port is in use.
func (o *Options) ListenOnFreePorts(ctx context.Context) (Listeners, error) {
	l, err := o.listen(ctx, Listeners{})
	if !errors.Is(err, syscall.EADDRINUSE) || o.addr != o.defaults.Addr && o.adminAddr != o.defaults.AdminAddr {
		return l, err
	}
	if o.addr == o.defaults.Addr {
		o.addr = "127.0.0.1:0"
	}
	if o.adminAddr == o.defaults.AdminAddr {
		o.adminAddr = "127.0.0.1:0"
	}
	return o.listen(ctx, Listeners{})
}
