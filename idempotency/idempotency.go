// Package idempotency remembers, inside the writer's transaction, what an idempotency key produced.
//
// It owns the table idempotency_records. Package runs claims a key in the statement that writes the run (Claimed), so a
// record exists exactly when its run does: there is no "in progress" that a crash could leave behind. Keys follow
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

// A Scope is what a key belongs to. It is the account and the operation, not the credential, so that a key rotated in
// the middle of a retry finds what its predecessor did.
type Scope struct {
	AccountID store.ID
	Method    string
	Route     string
}

// Hash is SHA-256 of a request as it was understood: two requests are the same when their hashes are.
type Hash [sha256.Size]byte

// HashOf hashes the fields of a decoded request. Each is preceded by its length, so that no two lists of fields give the
// same bytes.
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
	Answer      []byte // the body of the first answer, byte for byte
}

// Load returns what the key produced, or nil.
func Load(ctx context.Context, pool *pgxpool.Pool, s Scope, key string) (*Record, error) {
	var r Record
	var hash []byte
	err := pool.QueryRow(ctx, load, s.AccountID, s.Method, s.Route, key).Scan(&hash, &r.RunID, &r.Answer)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	copy(r.RequestHash[:], hash)
	return &r, err
}

// Purge forgets the records that are older than keep, a few at a time so that no lock is held for long, and returns how
// many they were.
func Purge(ctx context.Context, pool *pgxpool.Pool, keep time.Duration) (total int64, err error) {
	for {
		tag, err := pool.Exec(ctx, purge, keep, purgeStep)
		total += tag.RowsAffected()
		if err != nil || tag.RowsAffected() < purgeStep {
			return total, err
		}
	}
}

const purgeStep = 5000
