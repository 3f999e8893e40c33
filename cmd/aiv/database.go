package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/database"
	"aiv/store"
	"aiv/store/schema"
)

// databaseFlags declares the flags that choose the database. Parse sets c.source by them.
func (c *call) databaseFlags() { c.readSource = database.Flags(c.Call) }

// Parse is [cli.Call.Parse], and also sets c.source. It hides the method of the embedded Call, so that no command can
// forget to read the flags of the database.
func (c *call) Parse(required ...string) ([]string, error) {
	args, err := c.Call.Parse(required...)
	if err == nil && c.readSource != nil {
		c.source, err = c.readSource()
	}
	return args, err
}

// withDatabase runs f on the database that the command line chooses. It rejects one whose migrations do not fit this
// binary, because f could misread it.
func (c *call) withDatabase(ctx context.Context, f func(*pgxpool.Pool) error) error {
	return c.withAnyDatabase(ctx, func(pool *pgxpool.Pool) error {
		status, err := schema.ReadStatus(ctx, pool)
		if err != nil {
			return err
		}
		if err := status.Err(); err != nil {
			return c.source.In(err)
		}
		return f(pool)
	})
}

// withAnyDatabase is withDatabase without the check of the migrations.
func (c *call) withAnyDatabase(ctx context.Context, f func(*pgxpool.Pool) error) error {
	if err := c.source.CheckExists(); err != nil {
		return err
	}
	return c.withNewDatabase(ctx, f)
}

// withNewDatabase is withAnyDatabase, but creates the private PostgreSQL if it does not exist.
func (c *call) withNewDatabase(ctx context.Context, f func(*pgxpool.Pool) error) error {
	// A command runs one statement at a time.
	pool, closeDatabase, err := c.source.Open(ctx, 2, nil)
	if err != nil {
		return err
	}
	defer closeDatabase()
	return uncertain(denied(f(pool), "run the command as the owner of the tables"))
}

// uncertain adds to the error of a lost connection how to find out whether a change was made.
func uncertain(err error) error {
	if store.IsUncertain(err) {
		return fmt.Errorf("the connection to the database was lost: %w; "+
			"if the command makes a change, it may have been made: see aiv audit list before you repeat it", err)
	}
	return err
}

// denied adds to an error what to do if the role of the session lacks a privilege.
func denied(err error, remedy string) error {
	if store.IsNotPermitted(err) {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}
