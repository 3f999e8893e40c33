package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
	"aiv/store/private"
	"aiv/store/schema"
)

// A databaseSource chooses the database of a command: the one at url or, if that is empty, the private
// PostgreSQL in dir, which is private.DefaultDataDir where that is empty too.
type databaseSource struct{ url, dir string }

// A location says where a database is.
type location struct {
	Name    string   `json:"name"`
	Servers []string `json:"servers"`  // HOST:PORT; HOST may be the folder of a Unix socket
	DataDir *string  `json:"data_dir"` // of the private PostgreSQL
}

// location returns where the database is. It is empty if the URL is not valid.
func (s databaseSource) location() location {
	l := location{Servers: []string{}}
	if s.url != "" {
		if name, servers, err := store.Servers(s.url); err == nil {
			l.Name, l.Servers = name, servers
		}
		return l
	}
	dir := s.dir
	if dir == "" {
		dir, _ = private.DefaultDataDir()
	}
	if absolute, err := filepath.Abs(dir); err == nil && dir != "" {
		l.Name, l.DataDir = "aiv", &absolute
	}
	return l
}

func (l location) String() string {
	if l.DataDir != nil {
		return "private PostgreSQL in " + *l.DataDir
	}
	return fmt.Sprintf("database %s at %s", l.Name, strings.Join(l.Servers, ", "))
}

// in adds to an error in which database it is.
func (s databaseSource) in(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.location(), err)
}

// databaseFlags declares the flags that choose the database, and sets c.source, which reads them once they are parsed:
// flags over environment over the private PostgreSQL.
func (c *call) databaseFlags() {
	url := c.Flags.String("database-url", "", "the `URL` of the PostgreSQL to use (environment: DATABASE_URL, which ps does not show)")
	dir := c.Flags.String("data-dir", "", "the `FOLDER` of the private PostgreSQL that is used without a URL (environment: AIV_DATA_DIR)")
	c.source = func() (databaseSource, error) {
		// A folder on the command line and a URL name two databases; either could be the wrong one to change.
		switch {
		case *dir != "" && *url != "":
			return databaseSource{}, c.Wrong("-data-dir and -database-url name two databases; give one of them")
		case *dir != "" && c.Getenv("DATABASE_URL") != "":
			return databaseSource{}, c.Wrong("-data-dir and DATABASE_URL name two databases; unset DATABASE_URL or leave -data-dir out")
		case *dir != "":
			return databaseSource{dir: *dir}, nil
		case *url != "":
			return databaseSource{url: *url}, nil
		}
		return databaseSource{url: c.Getenv("DATABASE_URL"), dir: c.Getenv("AIV_DATA_DIR")}, nil
	}
}

// openDatabase connects to a database, starting the private PostgreSQL where there is no other. It does not look at the
// migrations. The function returned closes the pool and ends the use of the private PostgreSQL. log may be nil.
func openDatabase(ctx context.Context, source databaseSource, maxConns int32, log *slog.Logger) (*pgxpool.Pool, func(), error) {
	closeServer := func() {}
	if source.url == "" {
		server, err := private.Start(ctx, private.Config{Dir: source.dir, Log: log})
		if err != nil {
			return nil, nil, err
		}
		source.url = server.URL()
		closeServer = server.Close
	}
	pool, err := store.Open(ctx, source.url, maxConns)
	if err != nil {
		closeServer()
		return nil, nil, err
	}
	closeBoth := func() {
		pool.Close()
		closeServer()
	}
	if err := store.Connect(ctx, pool); err != nil {
		closeBoth()
		return nil, nil, unreachable(err)
	}
	return pool, closeBoth, nil
}

// withDatabase runs f on the database that the command line chooses. It refuses one whose migrations do not fit
// this binary, because f could misread it.
func (c *call) withDatabase(ctx context.Context, f func(*pgxpool.Pool) error) error {
	return c.withAnyDatabase(ctx, func(pool *pgxpool.Pool) error {
		status, err := schema.ReadStatus(ctx, pool)
		if err != nil {
			return err
		}
		if err := status.Err(); err != nil {
			source, _ := c.source() // withAnyDatabase has returned its error
			return source.in(err)
		}
		return f(pool)
	})
}

// withAnyDatabase is withDatabase without the check of the migrations.
func (c *call) withAnyDatabase(ctx context.Context, f func(*pgxpool.Pool) error) error {
	source, err := c.source()
	if err != nil {
		return err
	}
	// A command runs one statement at a time.
	pool, closeDatabase, err := openDatabase(ctx, source, 2, nil)
	if err != nil {
		return err
	}
	defer closeDatabase()
	return denied(f(pool), "run the command as the owner of the tables")
}

// denied adds to an error what to do if the role of the session lacks a privilege.
func denied(err error, remedy string) error {
	if store.IsNotPermitted(err) {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	return err
}

// unreachable makes one line of pgx's error, which has a line for each attempt. An address that is tried with TLS and without
// can have the same line twice.
func unreachable(err error) error {
	if _, reached := errors.AsType[*store.EncodingError](err); reached || errors.Is(err, context.Canceled) {
		return err
	}
	var attempts []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if !slices.ContainsFunc(attempts, func(earlier string) bool { return strings.HasSuffix(earlier, line) }) {
			attempts = append(attempts, line)
		}
	}
	return fmt.Errorf("cannot connect to the database: %s", strings.ReplaceAll(strings.Join(attempts, "; "), ":; ", ": "))
}
