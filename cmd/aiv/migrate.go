package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/capability"
	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
	"aiv/store/schema"
)

// A migrationRow is a migration as `aiv migrate` prints it. schema.Status defines the states.
type migrationRow struct {
	Version   int     `json:"version"`
	Name      string  `json:"name"`
	State     string  `json:"state"` // applied, pending, changed, newer or unknown
	AppliedAt *string `json:"applied_at"`

	applied string // AppliedAt for people
}

// migrated is what `aiv migrate` did. Its lists have only what this call changed.
type migrated struct {
	Applied []migrationRow `json:"applied"`
	Granted string         `json:"granted,omitempty"` // the role of -grant

	GrantedDispatch string `json:"granted_dispatch,omitempty"` // the role of -grant-dispatch

	Distributed []string `json:"distributed,omitempty"` // the tables that -distribute placed
}

// migrate applies the migrations, then distributes the tables, then grants privileges: each step needs the results of
// the one before. All steps may be repeated.
func migrate(ctx context.Context, c *call) error {
	status := c.Flags.Bool("status", false, "list the migrations and change nothing")
	serve := c.Flags.String("grant", "", "grant this `ROLE` the privileges that aiv serve needs, and revoke all others")
	dispatch := c.Flags.String("grant-dispatch", "", "grant this `ROLE` the privileges that aiv dispatch needs, and revoke all others")
	distribute := c.Flags.Bool("distribute", false, "distribute the tables by account over the servers of a Citus cluster; can be repeated")
	if _, err := c.Parse(); err != nil {
		return err
	}
	switch {
	case *status && (*serve+*dispatch != "" || *distribute):
		return c.Wrong("-status changes nothing, and -distribute, -grant and -grant-dispatch do; give one of them")
	case *serve != "" && *serve == *dispatch:
		return c.Wrong("-grant and -grant-dispatch each revoke what the other grants; give two roles")
	}
	if *status {
		return c.withAnyDatabase(ctx, func(pool *pgxpool.Pool) error { return c.migrationStatus(ctx, pool) })
	}
	return c.withNewDatabase(ctx, func(pool *pgxpool.Pool) error {
		if *distribute { // before anything is changed
			if err := schema.CheckCitus(ctx, pool); err != nil {
				return err
			}
		}
		applied, err := schema.Config{Report: func(line string) { fmt.Fprintln(c.Stderr, line) }}.Migrate(ctx, pool)
		if err != nil {
			return err
		}
		m := migrated{Applied: rowsOf("applied", applied), Granted: *serve, GrantedDispatch: *dispatch}
		if *distribute {
			if m.Distributed, err = distributeTables(ctx, pool); err != nil {
				return err
			}
		}
		for _, g := range m.grants() {
			if err := schema.Grant(ctx, pool, capability.All, g.service, g.role, c.actor()); err != nil {
				return err
			}
		}
		return c.Print(m, func(w io.Writer) { m.print(w, *distribute) })
	})
}

// distributeTables returns the tables that it placed; with an error, the tables placed before.
func distributeTables(ctx context.Context, pool *pgxpool.Pool) (tables []string, err error) {
	placed, err := schema.Distribute(ctx, pool, capability.All)
	for _, t := range placed {
		tables = append(tables, t.Table)
	}
	return tables, err
}

// A grant gives a role the privileges of a service.
type grant struct {
	service schema.Service
	role    string
}

// grants returns what the flags ask for.
func (m *migrated) grants() (given []grant) {
	for _, g := range []grant{{schema.Serve, m.Granted}, {schema.Dispatch, m.GrantedDispatch}} {
		if g.role != "" {
			given = append(given, g)
		}
	}
	return given
}

// print writes what was done. distribute reports whether -distribute was given: then print also says if there was no
// table to place.
func (m *migrated) print(w io.Writer, distribute bool) {
	for _, a := range m.Applied {
		fmt.Fprintf(w, "Applied %04d_%s.\n", a.Version, a.Name)
	}
	if len(m.Applied) == 0 {
		fmt.Fprintln(w, "The database is up to date.")
	}
	switch {
	case len(m.Distributed) > 0:
		fmt.Fprintf(w, "Distributed %s.\n", cli.Count(len(m.Distributed), "table", "tables"))
	case distribute:
		fmt.Fprintln(w, "All tables are distributed.")
	}
	for _, g := range m.grants() {
		fmt.Fprintf(w, "The role %s has the privileges that aiv %s needs, and no others.\n", g.role, g.service)
	}
}

// migrationStatus lists the migrations of the binary and the database by state. It succeeds even if they do not fit
// each other.
func (c *call) migrationStatus(ctx context.Context, pool *pgxpool.Pool) error {
	s, err := schema.ReadStatus(ctx, pool)
	if err != nil {
		return err
	}
	rows := rowsOf("applied", s.Applied)
	rows = append(rows, rowsOf("changed", s.Changed)...)
	rows = append(rows, rowsOf("pending", s.Pending)...)
	rows = append(rows, rowsOf("newer", s.Newer)...)
	rows = append(rows, rowsOf("unknown", s.Unknown)...)
	return c.Print(rows, func(w io.Writer) {
		cli.Row(w, "VERSION", "NAME", "STATE", "APPLIED")
		for _, r := range rows {
			cli.Row(w, strconv.Itoa(r.Version), r.Name, r.State, r.applied)
		}
		if err := s.Err(); err != nil {
			fmt.Fprintf(w, "\nNot usable by this binary: %s.\n", err)
		}
	})
}

// rowsOf returns the rows of migrations in one state. Pending ones have no time.
func rowsOf(state string, migrations []schema.Migration) []migrationRow {
	rows := []migrationRow{}
	for _, m := range migrations {
		var at *time.Time
		if !m.AppliedAt.IsZero() {
			at = &m.AppliedAt
		}
		rows = append(rows, migrationRow{m.Version, m.Name, state, store.FormatTimeOrNil(at), humanTime(at, "no")})
	}
	return rows
}
