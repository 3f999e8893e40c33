package main

import (
	"context"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/store"
)

func serve(ctx context.Context, c *call) error {
	c.databaseFlags()
	var o service.Serve
	check := o.Flags(c.Call)
	migrateFirst := c.Flags.Bool("migrate", false, "apply missing migrations before serving")
	if _, err := c.Parse(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	if err := o.UseSystemd(); err != nil {
		return err
	}
	log, endLog := o.Logger(c.Call)
	defer endLog()
	defer service.SurviveSignals(log)()
	if !cli.IsTerminal(c.Stderr) {
		o.LogRequests()
	}
	pool, closeDatabase, err := openDatabase(ctx, source, o.WriteConns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	if *migrateFirst {
		applied, err := store.MigrateConfig{Report: func(line string) { log.Warn(line) }}.Migrate(ctx, pool)
		if err != nil {
			return err
		}
		for _, m := range applied {
			log.Info("migration applied", "migration", m.String())
		}
	}
	if err := service.Prepare(ctx, pool, log); err != nil {
		return err
	}
	l, err := o.ListenOrTake(ctx, c.Getenv)
	if err != nil {
		return err
	}
	return o.Run(ctx, pool, log, l)
}

func dispatch(ctx context.Context, c *call) error {
	c.databaseFlags()
	var o service.Dispatch
	check := o.Flags(c.Call)
	if _, err := c.Parse(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	if err := o.UseSystemd(); err != nil {
		return err
	}
	log, endLog := o.Logger(c.Call)
	defer endLog()
	defer service.SurviveSignals(log)()
	pool, closeDatabase, err := openDatabase(ctx, source, o.Conns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	if err := service.Prepare(ctx, pool, log); err != nil {
		return err
	}
	l, err := o.ListenOrTake(ctx, c.Getenv)
	if err != nil {
		return err
	}
	return o.Run(ctx, pool, log, l)
}
