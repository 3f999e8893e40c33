package runs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"aiv/idempotency"
	"aiv/store"
)

// An Order is what Create is asked for: a proposal, under an idempotency key.
type Order struct {
	Proposal *Proposal
	Method   string // of the operation that the key belongs to
	Route    string
	Key      string

	// Answer encodes what the client is told of the run. It is kept with the key and told again, byte for byte.
	Answer func(*Run) []byte
}

// A Receipt is what the client is told: of the run that was written, or of the one that the key stands for already.
type Receipt struct {
	RunID    store.ID
	Answer   []byte
	Replayed bool
}

// Create writes the run, its jobs, its usage record and its answer in one transaction, exactly once per key.
//
// A new key is the common case, so a proposal that its checks admit goes straight to the writer, where the key decides;
// only where the key proves taken, or a check refuses, is it looked up. A replay is not checked again: what a key stands
// for is told whatever the catalog says today.
func (r *Runs) Create(ctx context.Context, o *Order) (*Receipt, error) {
	receipt, err := r.create(ctx, o)
	r.counts.add(o, receipt, err)
	return receipt, err
}

func (r *Runs) create(ctx context.Context, o *Order) (*Receipt, error) {
	methodology, no := r.cfg.Checks.Check(ctx, o.Proposal)
	for range claims {
		if no == nil {
			receipt, err := r.attempt(ctx, o, methodology)
			if receipt != nil || err != nil {
				return receipt, err
			}
		}
		receipt, err := r.replay(ctx, o)
		if receipt != nil || errors.Is(err, ErrKeyReused) {
			return receipt, err
		}
		if _, refused := errors.AsType[*Refusal](no); no != nil && !refused {
			return nil, no // the checks could not tell: that is the cause, whatever became of the look after it
		}
		if err != nil {
			return nil, err // a refusal may be told only where the key stands for nothing
		}
		if no != nil {
			return nil, no
		}
		// The key was taken when it was claimed and was forgotten before it was looked up.
	}
	return nil, fmt.Errorf("the idempotency key was claimed %d times in vain", claims)
}

const claims = 3

// attempt returns nil without an error when the key is taken.
func (r *Runs) attempt(ctx context.Context, o *Order, methodology string) (*Receipt, error) {
	p := o.Proposal
	run := &Run{
		ID: r.cfg.NewID(), AccountID: p.Credential.AccountID, CredentialID: p.Credential.ID, Status: "queued",
		MeasurementType: p.MeasurementType, MethodologyVersion: methodology,
		ModelIDs: p.ModelIDs, QuestionIDs: p.QuestionIDs, Repetitions: int(p.Repetitions),
		Locale: p.Locale, Country: p.Country, Language: p.Language, TotalJobs: int(p.TotalJobs()),
	}
	w := &writing{order: o, run: run, hash: p.hash(), answer: o.Answer(run)}
	lane := r.small
	if run.TotalJobs > maxJobsTogether {
		lane = r.large
	}
	claimed, err := lane.Do(ctx, w)
	if err != nil || !claimed {
		return nil, keyInUse(err)
	}
	return &Receipt{RunID: run.ID, Answer: w.answer}, nil
}

func (r *Runs) replay(ctx context.Context, o *Order) (*Receipt, error) {
	scope := idempotency.Scope{AccountID: o.Proposal.Credential.AccountID, Method: o.Method, Route: o.Route}
	record, err := idempotency.Load(ctx, r.cfg.Pool, scope, o.Key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking up an idempotency key: %w", err)
	case record == nil:
		return nil, nil
	case record.RequestHash != o.Proposal.hash():
		return nil, ErrKeyReused
	}
	return &Receipt{RunID: record.RunID, Answer: record.Answer, Replayed: true}, nil
}

// oneIsAtFault tells errors after which nothing was written and which one run of several may have caused: PostgreSQL
// refuses what it says, or waits for its key. A lock on a table or a full disk refuses them all, and each alone again.
func oneIsAtFault(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (!store.IsUnavailable(err) || waitsForKey(err) || e.Code == "40P01") // deadlock
}

// keyInUse tells a wait for a twin's transaction, ended by lock_timeout, from other waits.
func keyInUse(err error) error {
	if waitsForKey(err) {
		return ErrKeyInUse
	}
	return err
}

func waitsForKey(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == lockNotAvailable && strings.Contains(e.Where, "idempotency_records")
}

// lockNotAvailable is the code of the error that ends a wait for a lock.
const lockNotAvailable = "55P03"
