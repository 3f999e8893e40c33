// Package service runs the long-running commands, aiv serve and aiv dispatch: it wires the packages that do their work,
// and gives both the same listeners, TLS, admin pages, metrics, log, messages to systemd, and shutdown. It owns no
// table.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/gateway/httpserver"
	"aiv/gateway/telemetry"
	"aiv/store"
	"aiv/store/schema"
	"aiv/store/task"
)

// Prepare checks the database that a service is started on.
func Prepare(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger, name schema.Service) error {
	if err := schema.Ready(ctx, pool, capability.All, name); err != nil {
		return err
	}
	if err := store.VerifySession(ctx, pool); err != nil {
		return err
	}
	durable, err := store.Durable(ctx, pool)
	if err != nil {
		return err
	}
	if !durable {
		log.Warn("the database may lose committed transactions in a crash: fsync or synchronous_commit is off")
	}
	return nil
}

// A service has backgroundConns connections to the database for its background tasks and its page of metrics. Their
// sessions are plain; all other sessions of a service are hot (package store).
const backgroundConns = 2

// A service is an HTTP server with its background work.
type service struct {
	*Options
	name    schema.Service
	pool    *pgxpool.Pool
	log     *slog.Logger
	metrics *telemetry.Metrics
	server  *http.Server
	path    string // of the routes

	// tasks and beside run until the service is asked to end or its server fails. Then end finishes what the tasks have
	// begun. beside and end may be nil.
	tasks  []task.Task
	beside func(context.Context)
	end    func()
}

// run serves both listeners until ctx is done and the requests in progress have ended.
func (s *service) run(ctx context.Context, l Listeners) error {
	// The default leaves out the descriptors that the process itself needs.
	maxConnections := cmp.Or(s.maxConnections, defaultConnections(maxDescriptors(), s.maxConns+s.outgoing))
	listener := httpserver.NewListener(l.Main, httpserver.ListenerConfig{
		Max: maxConnections, MaxPerAddress: cmp.Or(s.maxPerAddress, max(1, maxConnections/2)), Log: s.log,
		Grown: func() { allowMemory(httpserver.GrowthStep, s.TLS()) },
	})
	s.metrics.Also(listener.WriteMetrics)
	s.metrics.Also(s.logs.WriteMetrics)
	runner := task.NewRunner(s.log, s.tasks)
	s.metrics.Also(writeTasks(runner))
	if s.tlsCert != "" {
		certificate, err := httpserver.NewCertificate(s.tlsCert, s.tlsKey, s.log)
		if err != nil {
			return fmt.Errorf("%s and %s: %w", tlsCertFlag, tlsKeyFlag, err)
		}
		s.server.TLSConfig = certificate.Config()
	}

	// The admin listener continues while the other one drains: /readyz reports it.
	adminCtx, stopAdmin := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAdmin()
	adminServer := httpserver.New(telemetry.Admin(telemetry.AdminConfig{
		Metrics: s.metrics, Level: s.level, Hosts: s.adminHosts, Ready: func(asked context.Context) error { return s.ready(ctx, asked) },
	}), s.log)
	adminEnded := make(chan error, 1)
	go func() { adminEnded <- httpserver.Serve(adminCtx, adminServer, l.Admin, time.Second) }()
	go s.notifier.Watch(adminCtx, l.Admin.Addr(), s.log)

	// A failure of the server ends the background work as well.
	backgroundCtx, stopBackground := context.WithCancel(ctx)
	defer stopBackground()
	var background sync.WaitGroup
	background.Go(func() {
		runner.Run(backgroundCtx)
		if s.end != nil {
			s.end()
		}
	})
	if s.beside != nil {
		background.Go(func() { s.beside(backgroundCtx) })
	}

	address := listener.Addr().String()
	s.log.Info("serving", "address", address, "path", s.path, "admin", l.Admin.Addr().String(), "tls", s.tlsCert != "")
	s.notifySystemd("READY=1\nSTATUS=Serving " + address + s.path)
	notified := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(notified)
		s.notifySystemd("STOPPING=1\nSTATUS=Ending the requests in progress")
	})
	// Serve returns after ctx is done and the requests have ended, after the drain time, or with a failure of the
	// listener.
	err := httpserver.Serve(ctx, s.server, listener, s.drain)
	stopBackground()
	background.Wait()
	// AfterFunc has its own goroutine, which may not have sent the message yet.
	if ctx.Err() != nil {
		<-notified
	}
	stopAdmin()
	s.log.Info("stopped")
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("connections were still open after %v (-drain)", s.drain)
	}
	if err != nil {
		return fmt.Errorf("serve %s: %w", address, err)
	}
	// A client that still reads a profile, or has connected without a request, does not make this a failure.
	if err := <-adminEnded; !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// ready returns why the service cannot serve. Migrations of a newer binary, applied while this one serves, only add to
// what it needs: it is ready until it is replaced, or an upgrade would take all instances out at once.
func (s *service) ready(ctx, asked context.Context) error {
	if ctx.Err() != nil {
		return errors.New("shutting down")
	}
	err := schema.Ready(asked, s.pool, capability.All, s.name)
	if _, newer := errors.AsType[*schema.NewerError](err); newer {
		return nil
	}
	return err
}

// notifySystemd only logs an error: a working service need not end because systemd was not notified.
func (s *service) notifySystemd(state string) {
	if err := s.notifier.Notify(state); err != nil {
		s.log.Error("systemd not notified", "error", err)
	}
}
