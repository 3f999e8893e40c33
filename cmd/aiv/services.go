package main

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/store/schema"
)

// serve is the Run function of aiv serve. The pool for writes is opened before the database is checked, because
// -migrate uses it.
func serve(ctx context.Context, c *call) error {
	var o service.Serve
	check := o.Flags(c.Call)
	migrateFirst := c.Flags.Bool("migrate", false, "apply missing migrations before serving")
	return c.withService(ctx, &o.Options, check, o.WriteConns, func(pool *pgxpool.Pool, log *slog.Logger) error {
		if *migrateFirst {
			if err := applyMigrations(ctx, pool, log); err != nil {
				return err
			}
		}
		l, err := c.listen(ctx, &o.Options, pool, log, schema.Serve)
		if err != nil {
			return err
		}
		service.TuneServe(pool)
		return o.Run(ctx, pool, log, l)
	})
}

// dispatch serves workers. Unlike serve, it cannot migrate: aiv migrate or aiv serve -migrate comes first.
func dispatch(ctx context.Context, c *call) error {
	var o service.Dispatch
	return c.withService(ctx, &o.Options, o.Flags(c.Call), o.Conns, func(pool *pgxpool.Pool, log *slog.Logger) error {
		l, err := c.listen(ctx, &o.Options, pool, log, schema.Dispatch)
		if err != nil {
			return err
		}
		service.TuneDispatch()
		return o.Run(ctx, pool, log, l)
	})
}

// withService declares the database flags of a service, parses its command line, and runs f with its database and log.
// The caller has declared the other flags.
func (c *call) withService(ctx context.Context, o *service.Options, check func() error, conns func() int32, f func(*pgxpool.Pool, *slog.Logger) error) error {
	c.databaseFlags()
	if _, err := c.Parse(); err != nil {
		return err
	}
	// check reads the flags, which Parse has set.
	if err := check(); err != nil {
		return err
	}
	if err := o.UseSystemd(); err != nil {
		return err
	}
	log, endLog := o.Logger(c.Call)
	// The deferred calls close the database, then the log, then restore the signals, so that SIGHUP does not interrupt
	// the first two.
	defer service.SurviveSignals(log)()
	defer endLog()
	if !cli.IsTerminal(c.Stderr) {
		o.LogRequests()
	}
	pool, closeDatabase, err := c.source.OpenHot(ctx, conns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	return f(pool, log)
}

// applyMigrations applies the missing migrations and logs them.
func applyMigrations(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) error {
	applied, err := schema.Config{Report: func(line string) { log.Warn(line) }}.Migrate(ctx, pool)
	if err != nil {
		return denied(err, "run aiv migrate as the owner of the tables")
	}
	for _, m := range applied {
		log.Info("migration applied", "migration", m.String())
	}
	return nil
}

// listen checks the database of a service and returns its listeners.
func (c *call) listen(ctx context.Context, o *service.Options, pool *pgxpool.Pool, log *slog.Logger, name schema.Service) (service.Listeners, error) {
	if err := service.Prepare(ctx, pool, log, name); err != nil {
		return service.Listeners{}, c.source.In(err)
	}
	return o.ListenOrTake(ctx, c.Getenv)
}
