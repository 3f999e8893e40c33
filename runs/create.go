package runs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/idempotency"
	"aiv/store"
)

// A CreateRequest asks for a run under an idempotency key.
type CreateRequest struct {
	Proposal  *Proposal
	Operation idempotency.Operation // of the key
	Key       string                // unique within the account and Operation

	// Response encodes the response for a run. It is stored with the key and returned by replays, byte for byte.
	Response func(*Run) []byte
}

// scope is the scope of the request's key.
func (q *CreateRequest) scope() idempotency.Scope {
	return idempotency.Scope{AccountID: q.Proposal.Orderer.AccountID, Operation: q.Operation}
}

// A CreateResult is the response for the run that was written, or for the one that the key produced before.
type CreateResult struct {
	RunID    store.ID
	Response []byte
	Replayed bool // the key had produced the run before
}

// Create writes the run, its jobs, its usage record and its response in one transaction, exactly once per key.
//
// A new key is the common case, so a proposal that passes its checks is written at once, and the statement decides
// whether the key is free. The key is looked up only if it is taken, or if a check rejects the run. Neither the checks
// nor the quota can reject a replay. Create returns a *Refusal of a check, or a *QuotaError.
func (r *Runs) Create(ctx context.Context, q *CreateRequest) (*CreateResult, error) {
	result, err := r.create(ctx, q)
	r.counts.add(q, result, err)
	return result, err
}

// create is Create without counting the outcome.
func (r *Runs) create(ctx context.Context, q *CreateRequest) (*CreateResult, error) {
	methodology, err := r.Check(ctx, q.Proposal)
	if err != nil {
		return r.replayOr(ctx, q, err)
	}
	for range maxClaims {
		// A nil result without an error means that the key is taken: the request is a replay or a conflict.
		if result, err := r.write(ctx, q, methodology); result != nil || err != nil {
			return result, err
		}
		if result, err := q.replay(ctx, r.cfg.Pool); result != nil || err != nil {
			return result, err
		}
		// The record of the key was purged between the claim and the lookup.
	}
	return nil, fmt.Errorf("the idempotency key was taken %d times and never found", maxClaims)
}

// maxClaims bounds how often Create claims a key that is taken but then not found.
const maxClaims = 3

// Check runs the checks of a proposal and returns the version of the methodology by which the run is measured. It
// returns a *Refusal of a check.
func (r *Runs) Check(ctx context.Context, p *Proposal) (methodology string, err error) {
	return r.cfg.Checks.Check(ctx, p)
}

// replayOr replays the request if its key is taken. Otherwise it returns refused, the error of the checks. If the
// lookup of the key fails too, the error of the checks is returned unless it is a Refusal.
func (r *Runs) replayOr(ctx context.Context, q *CreateRequest, refused error) (*CreateResult, error) {
	result, err := q.replay(ctx, r.cfg.Pool)
	if result != nil || errors.Is(err, ErrKeyReused) {
		return result, err
	}
	if _, decided := errors.AsType[*Refusal](refused); decided && err != nil {
		return nil, err // a refusal is the response only if the key is known to be free
	}
	return nil, refused
}

// write waits for a batch to write the run. It returns nil without an error if the key is not free.
func (r *Runs) write(ctx context.Context, q *CreateRequest, methodology string) (*CreateResult, error) {
	p := r.newPending(q, methodology)
	run, jobs := p.run, int64(p.run.TotalJobs)
	// The run counts as unfinished in the estimate while it is being written, so that concurrent runs of the account
	// are seen.
	unfinished := r.unfinished.add(run.AccountID, jobs)
	defer r.unfinished.add(run.AccountID, -jobs)
	// Small and large runs, metered or not, have separate batchers, so that none waits for runs of another kind.
	batcher, large := r.small, r.large
	if q.Proposal.Orderer.isMetered(unfinished) {
		batcher, large = r.metered, r.largeMetered
	}
	if run.TotalJobs > maxBatchJobs {
		batcher = large
	}
	result, err := batcher.Do(ctx, p)
	// With an error, result is the zero value.
	switch {
	case waitedForKey(err) || result.inUse:
		return nil, ErrKeyInUse
	case result.quota != nil:
		return nil, result.quota
	case err != nil || !result.written:
		return nil, err
	}
	return &CreateResult{RunID: run.ID, Response: p.response}, nil
}

// newPending returns the run with its id, its hash and its encoded response, which do not change in retries.
func (r *Runs) newPending(q *CreateRequest, methodology string) *pending {
	p := q.Proposal
	run := &Run{
		ID: r.cfg.NewID(), AccountID: p.Orderer.AccountID, Status: "queued",
		MeasurementType: p.MeasurementType, MethodologyVersion: methodology,
		ModelIDs: p.ModelIDs, QuestionIDs: p.QuestionIDs, Repetitions: int(p.Repetitions),
		Locale: p.Locale, Country: p.Country, Language: p.Language, TotalJobs: int(p.TotalJobs()),
	}
	return &pending{request: q, run: run, hash: p.hash(), response: q.Response(run), arrived: time.Now()}
}

// replay returns the stored response of the key, nil if the key is free, or ErrKeyReused.
func (q *CreateRequest) replay(ctx context.Context, db store.Querier) (*CreateResult, error) {
	record, err := idempotency.Load(ctx, db, q.scope(), q.Key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("looking up an idempotency key: %w", err)
	case record == nil:
		return nil, nil
	case record.RequestHash != q.Proposal.hash():
		return nil, ErrKeyReused
	}
	return &CreateResult{RunID: record.RunID, Response: record.Response, Replayed: true}, nil
}

// hash identifies the request: equal hashes mean the same request. The order of ids counts; the orderer does not. A new
// optional member must be added only if it is present, so that a request that is repeated after an upgrade has the same
// hash as before.
func (p *Proposal) hash() idempotency.Hash {
	fields := make([]string, 0, len(p.ModelIDs)+len(p.QuestionIDs)+8)
	// The lengths of the lists tell where one ends and the next begins.
	fields = append(fields, strconv.Itoa(len(p.ModelIDs)))
	fields = append(fields, p.ModelIDs...)
	fields = append(fields, strconv.Itoa(len(p.QuestionIDs)))
	fields = append(fields, p.QuestionIDs...)
	fields = append(fields, strconv.FormatInt(p.Repetitions, 10), p.MeasurementType, p.Locale, p.Country, p.Language)
	return idempotency.HashOf(fields...)
}

// CreateTx is Create in the caller's transaction, for runs that are created together with changes of other rows. The
// caller must call Check before the transaction, because the checks read the catalog on other connections. The
// transaction must be READ COMMITTED. It locks the account's row of account_months, so it should be short.
//
// The transaction can go on after a *QuotaError and ErrKeyReused. After any other error it must be rolled back. Stats
// does not count runs that are created by CreateTx, because their transactions may be rolled back.
func (r *Runs) CreateTx(ctx context.Context, tx pgx.Tx, q *CreateRequest, methodology string) (*CreateResult, error) {
	p := r.newPending(q, methodology)
	jobs := int64(p.run.TotalJobs)
	unfinished := r.unfinished.add(p.run.AccountID, jobs)
	defer r.unfinished.add(p.run.AccountID, -jobs)
	// A batcher would use a transaction of its own.
	write := r.insertTx
	if q.Proposal.Orderer.isMetered(unfinished) {
		write = func(ctx context.Context, tx pgx.Tx, batch []*pending) ([]writeResult, error) {
			// The caller's lock_timeout applies.
			return r.writeFitting(ctx, tx, batch, lockWait{})
		}
	}
	for range maxClaims {
		results, err := write(ctx, tx, []*pending{p})
		switch {
		case waitedForKey(err):
			return nil, ErrKeyInUse
		case err != nil:
			return nil, err
		case results[0].quota != nil:
			return nil, results[0].quota
		case results[0].written:
			return &CreateResult{RunID: p.run.ID, Response: p.response}, nil
		}
		if result, err := q.replay(ctx, tx); result != nil || err != nil {
			return result, err
		}
		// The record of the key was purged between the claim and the lookup.
	}
	return nil, fmt.Errorf("the key was taken %d times and never found", maxClaims)
}
