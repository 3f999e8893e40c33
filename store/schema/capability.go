package schema

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A Capability lists what one package owns: its tables, with all that the commands of operators must know of them, its
// invariants, ids, scopes and types of events. A package that owns tables exports its Capability, and package
// cmd/aiv/capability lists them. They are in the order of the layers, so that a package stands after the packages that
// it imports.
//
// A new table is a migration, an entry here and the same statement in store/schema.sql. A new folder of packages is also
// in the layers of cmd/aiv/imports_test.go.
type Capability struct {
	Name       string
	Tables     []Table
	Functions  []Object
	Sequences  []Object
	Invariants []store.Invariant
	Prefixes   map[string]string // of ids, by the word that precedes a UUID in the rows of invariants: "run": "run"
	Scopes     []string          // of credentials
	Events     []EventType
}

// A Table is a table of the schema. Privileges on Citus are those that a role needs besides the others there.
type Table struct {
	Name            string
	Placement       Placement
	Serve           Privileges // of aiv serve
	Dispatch        Privileges // of aiv dispatch
	ServeOnCitus    Privileges
	DispatchOnCitus Privileges
	Erase           Erasure // how the rows of an account are erased; not needed if all of them are rows of runs
	Purge           Purge   // what deleting runs does to the rows that refer to them
}

// An Object is a function or a sequence.
type Object struct {
	Name     string
	Serve    Privileges
	Dispatch Privileges
}

// An EventType is a type of events. Scope is what a credential needs to read their data besides the scope of the route,
// or "".
type EventType struct{ Name, Scope string }

// An Erasure says how the rows of an account are erased. Each function may be repeated, so that an interrupted erasure
// can be finished, and returns how many rows of the table it deleted. A function that is nil is not called.
type Erasure struct {
	// Before is called each time before the account's runs are deleted.
	Before EraseFunc
	// First is called when the account's keys have just been revoked, and again when no request of the account is in
	// progress. The account's runs are deleted before the second call.
	First EraseFunc
	// Last is called once, at the end.
	Last EraseFunc
	// With is the table whose rows are erased together with the rows of this one.
	With string
	// Kept is why the rows stay.
	Kept string
}

// An EraseFunc deletes the rows of an account in a table, in steps that are short enough for a database in use. See
// [store.Step].
type EraseFunc func(ctx context.Context, pool *pgxpool.Pool, table string, account store.ID) (rows int64, err error)

// A Purge says what deleting runs does to a table. Lock and Delete are called in the transaction that deletes the
// runs. A function that is nil is not called.
type Purge struct {
	// Prepare is called before the transaction, for runs that are final.
	Prepare func(ctx context.Context, pool *pgxpool.Pool, account store.ID, runs []store.ID) error
	// Lock takes locks that come before the locks on rows of runs in the order of locks.
	Lock func(ctx context.Context, tx pgx.Tx, account store.ID, runs []store.ID) error
	// Delete deletes the rows, or makes them refer to no run. The runs are locked.
	Delete PurgeFunc
	// With is the table whose rows are deleted together with the rows of this one.
	With string
}

// A PurgeFunc deletes the rows of runs in a table, or makes them refer to no run.
type PurgeFunc func(ctx context.Context, tx pgx.Tx, table string, account store.ID, runs []store.ID) error

// Tables returns the tables of capabilities.
func Tables(all []Capability) (tables []Table) {
	for _, c := range all {
		tables = append(tables, c.Tables...)
	}
	return tables
}

// Base has the tables of package store and of this package.
var Base = Capability{
	Name: "store",
	Tables: []Table{
		// aiv serve reads schema_migrations at its start, at the URL of any server.
		{Name: "schema_migrations", Placement: Coordinator, Serve: Privileges{Select}, Dispatch: Privileges{Select}},
		{Name: "shared_secrets", Placement: Reference, Serve: Privileges{Select}, Dispatch: Privileges{Select}},
		{Name: "audit_log", Placement: Local, Dispatch: Privileges{Insert}},
	},
	Invariants: store.Invariants(),
}
