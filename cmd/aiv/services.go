package main

import (
	"context"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/store/schema"
)

func serve(ctx context.Context, c *call) error {
	c.databaseFlags()
	var o service.Serve
	check, checkStandby := o.Flags(c.Call), o.StandbyFlags(c.Call)
	migrateFirst := c.Flags.Bool("migrate", false, "apply missing migrations before serving")
	if _, err := c.Parse(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	if err := checkStandby(); err != nil {
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
	defer service.SurviveSignals(log)()
	defer endLog()
	if !cli.IsTerminal(c.Stderr) {
		o.LogRequests()
	}
	pool, closeDatabase, err := openDatabase(ctx, source, o.WriteConns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	counts, err := service.OpenCounts(ctx, pool)
	if err != nil {
		return err
	}
	defer counts.Close()
	if *migrateFirst {
		applied, err := schema.Config{Report: func(line string) { log.Warn(line) }}.Migrate(ctx, pool)
		if err != nil {
			return denied(err, "run aiv migrate as the owner of the tables")
		}
		for _, m := range applied {
			log.Info("migration applied", "migration", m.String())
		}
	}
	if err := service.Prepare(ctx, pool, log, schema.Serve); err != nil {
		return source.in(err)
	}
	l, err := o.ListenOrTake(ctx, c.Getenv)
	if err != nil {
		return err
	}
	service.Tune(pool, service.ServePercent)
	return o.Run(ctx, pool, counts, log, l)
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
	defer service.SurviveSignals(log)()
	defer endLog()
	pool, closeDatabase, err := openDatabase(ctx, source, o.Conns(), log)
	if err != nil {
		return err
	}
	defer closeDatabase()
	if err := service.Prepare(ctx, pool, log, schema.Dispatch); err != nil {
		return source.in(err)
	}
	l, err := o.ListenOrTake(ctx, c.Getenv)
	if err != nil {
		return err
	}
	service.Tune(pool, service.DispatchPercent)
	return o.Run(ctx, pool, log, l)
}
