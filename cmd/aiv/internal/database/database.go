// Package database finds and opens the database of a command: the one that its flags or its environment name or, if
// they name none, the private PostgreSQL. It owns no table.
package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
	"aiv/store/private"
)

// A Source is the database at URL or, if that is empty, in the private PostgreSQL in Dir, which is
// [DefaultDir] if that is empty too.
type Source struct{ URL, Dir string }

// Flags declares the flags that choose the database. After they are parsed, the function returned reads them: flags
// over environment over the private PostgreSQL.
func Flags(c *cli.Call) func() (Source, error) {
	url := c.Flags.String("database-url", "", "the `URL` of the PostgreSQL to use (environment: DATABASE_URL, which ps does not show)")
	dir := c.Flags.String("data-dir", "", "the `FOLDER` of the private PostgreSQL that is used without a URL (environment: AIV_DATA_DIR; default: $XDG_DATA_HOME/aiv, else ~/.local/share/aiv; for root /var/lib/aiv)")
	return func() (Source, error) {
		// A folder on the command line and a URL name two databases; either could be the wrong one to change.
		switch {
		case *dir != "" && *url != "":
			return Source{}, c.Wrong("-data-dir and -database-url name two databases; give one of them")
		case *dir != "" && c.Getenv("DATABASE_URL") != "":
			return Source{}, c.Wrong("-data-dir and DATABASE_URL name two databases; unset DATABASE_URL or leave -data-dir out")
		case *dir != "":
			return Source{Dir: *dir}, nil
		case *url != "":
			return Source{URL: *url}, nil
		}
		return Source{URL: c.Getenv("DATABASE_URL"), Dir: c.Getenv("AIV_DATA_DIR")}, nil
	}
}

// CheckExists returns an error if the database is in a private PostgreSQL that does not exist. Commands that need its
// data would create it otherwise, perhaps only because DATABASE_URL is not set.
func (s Source) CheckExists() error {
	if s.URL != "" {
		return nil
	}
	dir, err := s.dir()
	if err != nil || private.Exists(dir) {
		return err
	}
	return fmt.Errorf("there is no private PostgreSQL in %s; set DATABASE_URL to use another database, or run `aiv migrate` to create it", dir)
}

// dir returns the absolute folder of the private PostgreSQL.
func (s Source) dir() (string, error) {
	if s.Dir != "" {
		return filepath.Abs(s.Dir)
	}
	return DefaultDir()
}

// DefaultDir returns aiv's folder by the XDG base directory specification. For root it is /var/lib/aiv, unless there
// already is a server in the other, because usually only root can enter root's home.
//
// https://specifications.freedesktop.org/basedir/latest/
func DefaultDir() (string, error) {
	base := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(base) { // the specification: a relative one is ignored
		home, err := os.UserHomeDir()
		if err != nil && os.Geteuid() != 0 {
			return "", fmt.Errorf("find a folder for aiv's data: %w", err)
		}
		base = filepath.Join(home, ".local", "share")
	}
	dir := filepath.Join(base, "aiv")
	if os.Geteuid() == 0 && !private.Exists(dir) {
		return "/var/lib/aiv", nil
	}
	return dir, nil
}

// Open connects to the database by plain sessions, starting the private PostgreSQL if there is no other. It does not
// check the migrations. The function returned closes the pool and ends the use of the private PostgreSQL. log may be
// nil.
func (s Source) Open(ctx context.Context, maxConns int32, log *slog.Logger) (*pgxpool.Pool, func(), error) {
	return s.open(ctx, maxConns, log, store.Open)
}

// OpenHot is Open for the hot sessions of a service.
func (s Source) OpenHot(ctx context.Context, maxConns int32, log *slog.Logger) (*pgxpool.Pool, func(), error) {
	return s.open(ctx, maxConns, log, store.OpenHot)
}

// open connects by its argument open, which is store.Open or store.OpenHot. s is a copy, so the caller does not see the
// URL of the private PostgreSQL.
func (s Source) open(ctx context.Context, maxConns int32, log *slog.Logger,
	open func(context.Context, string, int32) (*pgxpool.Pool, error)) (*pgxpool.Pool, func(), error) {
	// A database at a URL keeps running.
	closeServer := func() {}
	if s.URL == "" {
		dir, err := s.dir()
		if err != nil {
			return nil, nil, err
		}
		if log == nil {
			log = slog.New(slog.DiscardHandler)
		}
		server, err := private.Start(ctx, dir, log)
		if err != nil {
			return nil, nil, err
		}
		s.URL = server.URL()
		closeServer = server.Close
	}
	pool, err := open(ctx, s.URL, maxConns)
	if err != nil {
		closeServer()
		return nil, nil, err
	}
	closeBoth := func() {
		pool.Close()
		closeServer()
	}
	// A pool connects lazily. The first connection shows whether the database can be used.
	if err := store.Connect(ctx, pool); err != nil {
		closeBoth()
		return nil, nil, unreachable(err)
	}
	return pool, closeBoth, nil
}

// unreachable makes one line of pgx's error, which has a line for each attempt. An address that is tried with TLS and
// without can have the same line twice.
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

// In adds to an error the name of the database that it concerns.
func (s Source) In(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Location(), err)
}

// A Location says where a database is.
type Location struct {
	Name    string   `json:"name"`
	Servers []string `json:"servers"`  // HOST:PORT; HOST may be the folder of a Unix socket
	DataDir *string  `json:"data_dir"` // of the private PostgreSQL
}

// Location returns where the database is. It is empty if the URL is not valid.
func (s Source) Location() Location {
	l := Location{Servers: []string{}}
	if s.URL != "" {
		if name, servers, err := store.Servers(s.URL); err == nil {
			l.Name, l.Servers = name, servers
		}
		return l
	}
	if dir, err := s.dir(); err == nil {
		l.Name, l.DataDir = "aiv", &dir
	}
	return l
}

// String returns where the database is, for people.
func (l Location) String() string {
	if l.DataDir != nil {
		return "private PostgreSQL in " + *l.DataDir
	}
	return fmt.Sprintf("database %s at %s", l.Name, strings.Join(l.Servers, ", "))
}
