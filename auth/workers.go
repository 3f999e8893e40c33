package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"aiv/store"
)

// A Worker is a program that processes jobs, identified by its token.
type Worker struct {
	ID         store.ID
	Name       string
	Providers  []string // whose jobs it may claim; nil: all
	CreatedAt  time.Time
	RevokedAt  *time.Time
	LastSeenAt *time.Time // to the minute
}

// CreateWorker registers a worker and returns it with its token, which is not shown again.
func (a *Admin) CreateWorker(ctx context.Context, name string, providers []string) (Worker, string, error) {
	if strings.TrimSpace(name) == "" {
		return Worker{}, "", errors.New("the worker's name is empty")
	}
	if providers != nil {
		// nil allows all providers. An empty list would allow none.
		if providers = unique(providers); len(providers) == 0 {
			return Worker{}, "", errors.New("the list of providers is empty; leave it out to allow all")
		}
	}
	// The prefix of a token is not stored.
	token, _, hash := newSecret(tokenStart)
	w := Worker{ID: store.NewID(), Name: name, Providers: providers}
	err := a.change(ctx, "workers.create", w.ID.Text("wrk"), map[string]any{"name": name, "providers": providers}, func(tx pgx.Tx) error {
		var known []string
		if err := tx.QueryRow(ctx, knownProviders, providers).Scan(&known); err != nil {
			return err
		}
		for _, p := range providers {
			if !slices.Contains(known, p) {
				return fmt.Errorf("there is no provider %q; see aiv providers list", p)
			}
		}
		return tx.QueryRow(ctx, createWorker, w.ID, name, providers, hash[:]).Scan(&w.CreatedAt)
	})
	return w, token, err
}

// Workers lists the workers, oldest first.
func (a *Admin) Workers(ctx context.Context) ([]Worker, error) {
	return store.Collect(ctx, a.Pool, pgx.RowToStructByPos[Worker], listWorkers)
}

// WorkersSeen counts the workers whose token was used in the last 5 minutes, and that may claim jobs of a provider. An
// empty provider selects all workers.
func (a *Admin) WorkersSeen(ctx context.Context, provider string) (n int, err error) {
	err = a.Pool.QueryRow(ctx, countSeen, provider).Scan(&n)
	return n, err
}

// RevokeWorker revokes a worker's token, from the next request on.
func (a *Admin) RevokeWorker(ctx context.Context, id store.ID) (w Worker, err error) {
	err = a.change(ctx, "workers.revoke", id.Text("wrk"), nil, func(tx pgx.Tx) (err error) {
		w, err = store.CollectOne(ctx, tx, pgx.RowToStructByPos[Worker], revokeWorker, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("there is no worker %s; see aiv workers list", id.Text("wrk"))
		}
		return err
	})
	return w, err
}

// ErrUnknownWorker is returned for a token that is unknown or revoked.
var ErrUnknownWorker = errors.New("no worker has this token")
