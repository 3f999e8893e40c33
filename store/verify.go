package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// An Invariant is a statement about the database that is always true between transactions. Each package lists the
// invariants of its tables.
type Invariant struct {
	Name string // one word with underscores
	Doc  string // what holds, in one sentence
	// Query returns one text for each row that breaks the invariant: ids, each as a word such as account and a UUID,
	// and what differs.
	Query string
	Args  []any // of Query

	// Check is used instead of Query where SQL cannot decide. It calls report with a text for each row that breaks the
	// invariant. An error that is not the database's names a stored value that cannot be read.
	Check func(ctx context.Context, tx pgx.Tx, report func(row string)) error
}

// A Violation is an invariant that does not hold.
type Violation struct {
	Invariant Invariant
	Count     int
	Rows      []string // the first of them
}

// A Beginner begins transactions: a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// maxViolationRows bounds the rows that Verify returns for one invariant.
const maxViolationRows = 20

// Verify reads the whole database in one snapshot and returns the invariants that do not hold. It changes nothing and
// takes no lock that requests wait for.
//
// On Citus each server has its own snapshots. A transaction on several of them may be visible on one and not yet on
// another, so what a read finds is a violation if the next reads find it too.
func Verify(ctx context.Context, db Beginner, invariants []Invariant) (violations []Violation, err error) {
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, db, snapshot, func(tx pgx.Tx) error {
		reads := 1
		if IsCitus(tx.Conn()) {
			reads = citusReads
			// In REPEATABLE READ, all reads would see the same snapshot.
			if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL READ COMMITTED`); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, withoutTimeouts); err != nil {
			return err
		}
		for _, invariant := range invariants {
			v, err := check(ctx, tx, invariant)
			for n := 1; n < reads && err == nil && v.Count > 0; n++ {
				v, err = checkAgain(ctx, tx, v)
			}
			if err != nil && !ofStoredValue(err) {
				return fmt.Errorf("verify %s: %w", invariant.Name, err)
			}
			if err != nil { // a stored value cannot be read
				v.Count++
				v.Rows = append(v.Rows, err.Error())
			}
			if v.Count > 0 {
				violations = append(violations, v)
			}
		}
		return nil
	})
	return violations, err
}

// ofStoredValue reports whether an error is due to what the database has stored, and not to the database.
func ofStoredValue(err error) bool {
	_, rejected := errors.AsType[*pgconn.PgError](err)
	return !rejected && !IsUnavailable(err)
}

// On Citus a violation is read citusReads times before it is returned.
const citusReads = 10

// checkAgain returns what is still there of a violation. Rows beyond those that a Violation has cannot be compared.
func checkAgain(ctx context.Context, tx pgx.Tx, before Violation) (Violation, error) {
	v, err := check(ctx, tx, before.Invariant)
	// If there are more rows, v keeps what the latest read found.
	if max(v.Count, before.Count) <= maxViolationRows {
		v.Rows = slices.DeleteFunc(v.Rows, func(row string) bool { return !slices.Contains(before.Rows, row) })
		v.Count = len(v.Rows)
	}
	return v, err
}

// check evaluates an invariant once. It counts all rows and keeps the first of them.
func check(ctx context.Context, tx pgx.Tx, invariant Invariant) (Violation, error) {
	v := Violation{Invariant: invariant}
	if invariant.Check != nil {
		err := invariant.Check(ctx, tx, func(row string) {
			if v.Count++; v.Count <= maxViolationRows {
				v.Rows = append(v.Rows, row)
			}
		})
		return v, err
	}
	rows, err := tx.Query(ctx, invariant.Query, invariant.Args...)
	if err != nil {
		return v, err
	}
	defer rows.Close()
	for rows.Next() {
		v.Count++
		if v.Count > maxViolationRows {
			continue
		}
		var row string
		if err := rows.Scan(&row); err != nil {
			return v, err
		}
		v.Rows = append(v.Rows, row)
	}
	return v, rows.Err()
}
