// Package idempotency records what each idempotency key produced.
//
// It owns the table idempotency_records. Package runs claims a key in the statement that writes the run (Claimed), so
// there is no record without its run: a crash cannot leave a key "in progress". Command aiv calls Purge. Keys follow
// [draft-ietf-httpapi-idempotency-key-header].
//
// [draft-ietf-httpapi-idempotency-key-header]: https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// A Scope is what a key belongs to: the account and the operation, not the credential, so that a client that rotates
// its API key between two tries finds what the first try produced.
type Scope struct {
	AccountID store.ID
	Operation
}

// An Operation is what a key makes happen once: a method and a route of the API. Other operations have a method and a
// path that are not a route, so that their keys cannot equal a client's: a schedule has POST and /v1/schedules/ID, and
// its due times as keys.
type Operation struct{ Method, Route string }

// Hash is the SHA-256 of a decoded request. Two requests are the same if their hashes are equal.
type Hash [sha256.Size]byte

// HashOf hashes the fields of a decoded request. It writes each field's length before it, so that different lists of
// fields give different bytes.
func HashOf(fields ...string) Hash {
	var b []byte
	for _, f := range fields {
		b = binary.AppendUvarint(b, uint64(len(f)))
		b = append(b, f...)
	}
	return sha256.Sum256(b)
}

// A Record is what a key produced.
type Record struct {
	RequestHash Hash
	RunID       store.ID
	Response    []byte // the body of the first response, byte for byte
}

// Load returns what the key produced, or nil if it is not recorded.
func Load(ctx context.Context, db store.Querier, s Scope, key string) (*Record, error) {
	var r Record
	var hash []byte
	err := db.QueryRow(ctx, load, s.AccountID, s.Method, s.Route, key).Scan(&hash, &r.RunID, &r.Response)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	copy(r.RequestHash[:], hash)
	return &r, err
}

// Purge deletes the records that are older than keep, in small steps so that each transaction is short, and returns how
// many it deleted. It deletes nothing and returns a *store.ClockError if the clocks of the process and the database
// disagree.
func Purge(ctx context.Context, pool *pgxpool.Pool, keep time.Duration) (total int64, err error) {
	before, err := store.PurgeBefore(ctx, pool, keep)
	if err != nil {
		return 0, err
	}
	for more := true; more; {
		end := before
		err := pool.QueryRow(ctx, purgeEnd, before, purgeStep).Scan(&end)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return total, err
		}
		more = err == nil
		tag, err := pool.Exec(ctx, purge, end)
		if err != nil {
			return total, err
		}
		total += tag.RowsAffected()
	}
	return total, nil
}

const purgeStep = 5000

// Forget deletes the records of runs of an account, in the transaction that deletes the runs. created are the times at
// which the runs were created.
func Forget(ctx context.Context, tx pgx.Tx, account store.ID, runs []store.ID, created []time.Time) error {
	_, err := tx.Exec(ctx, forget, account, runs, created)
	return err
}
