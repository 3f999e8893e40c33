package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// NextRevision is the next value of the column revision, at least the time in microseconds: a database that was
// restored and then changed does not repeat a revision under which a process still caches rows. Citus rejects
// clock_timestamp here, and evaluates statement_timestamp on the coordinator.
const NextRevision = `GREATEST(revision + 1, floor(extract(epoch FROM statement_timestamp()) * 1e6)::bigint)`

// Now returns the time of the database's clock.
func Now(ctx context.Context, db Querier) (now time.Time, err error) {
	err = db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now, err
}

// maxClockSkew bounds the difference between the clocks of the process and the database at which a purge runs.
const maxClockSkew = time.Minute

// A ClockError reports that the clocks of the process and the database disagree, so that the age of rows is not known.
type ClockError struct{ Process, Database time.Time }

func (e *ClockError) Error() string {
	return fmt.Sprintf("the clocks of this machine (%s) and the database (%s) differ by more than %v; synchronize them",
		e.Process.UTC().Format(time.RFC3339), e.Database.UTC().Format(time.RFC3339), maxClockSkew)
}

// PurgeBefore returns the time before which rows are older than keep, by both clocks, for a purge that deletes by age.
// It returns a *ClockError if the clocks disagree: a clock that jumped forward must not make rows of today look old.
func PurgeBefore(ctx context.Context, pool *pgxpool.Pool, keep time.Duration) (time.Time, error) {
	database, err := Now(ctx, pool)
	if err != nil {
		return time.Time{}, err
	}
	return purgeBefore(time.Now(), database, keep)
}

// purgeBefore counts from the clock that is behind, so that no row is deleted too early by either.
func purgeBefore(process, database time.Time, keep time.Duration) (time.Time, error) {
	skew := process.Sub(database)
	if skew > maxClockSkew || skew < -maxClockSkew {
		return time.Time{}, &ClockError{Process: process, Database: database}
	}
	if process.Before(database) {
		database = process
	}
	return database.Add(-keep), nil
}
