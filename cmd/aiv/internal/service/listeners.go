package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
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
	return o.complete(Listeners{public, admin}, func(addr string, _ bool) (net.Listener, error) { return Listen(ctx, addr) })
}

// ListenOnFreePorts opens the listeners, each on a free port if its address is the default and in use.
func (o *Options) ListenOnFreePorts(ctx context.Context) (Listeners, error) {
	return o.complete(Listeners{}, func(addr string, mayMove bool) (net.Listener, error) {
		l, err := Listen(ctx, addr)
		if errors.Is(err, syscall.EADDRINUSE) && mayMove {
			return Listen(ctx, "127.0.0.1:0")
		}
		return l, err
	})
}

// complete opens the listeners that l lacks. If one cannot be opened, it closes the others, including passed ones.
func (o *Options) complete(l Listeners, open func(addr string, mayMove bool) (net.Listener, error)) (Listeners, error) {
	for _, missing := range []struct {
		l          *net.Listener
		flag, addr string
		mayMove    bool
	}{{&l.Main, o.addrFlag, o.addr, o.mayMove.addr}, {&l.Admin, adminAddrFlag, o.adminAddr, o.mayMove.adminAddr}} {
		if *missing.l != nil {
			continue
		}
		opened, err := open(missing.addr, missing.mayMove)
		if err != nil {
			l.Close()
			return Listeners{}, fmt.Errorf("%s: %w", missing.flag, err)
		}
		*missing.l = opened
	}
	return l, nil
}

// Listen listens on an address. For 0.0.0.0, package net would listen on IPv6 as well.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	network := "tcp"
	if host, _, err := net.SplitHostPort(addr); err == nil {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
			network = "tcp4"
		}
	}
	var config net.ListenConfig
	return config.Listen(ctx, network, addr)
}
