// Package demo fills a database with sample data for `aiv demo`: a plan, an account, a catalog, runs of the past four weeks
// and the insights that follow from them. It owns no table: the data go through the packages that do.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/auth"
	"aiv/catalog"
	"aiv/store"
)

// sampleCatalog is in the format of `aiv catalog import`.
//
//go:embed catalog.jsonl
var sampleCatalog []byte

// readyProviders have all dependencies met. The other providers show what a client sees otherwise.
var readyProviders = []string{"openai", "google", "perplexity", "mistral"}

const (
	actor       = "aiv demo"
	accountName = "Demo"
	planCode    = "demo"
	keyName     = "demo"
)

// Fill writes the sample data that are not in the database yet, revokes the keys of earlier calls, and issues a new key.
func Fill(ctx context.Context, pool *pgxpool.Pool) (key string, err error) {
	admin := &auth.Admin{Pool: pool, Actor: actor, NewID: store.NewID}
	rate := 600
	if err := admin.SetPlan(ctx, auth.Plan{Code: planCode, Features: []string{auth.APIAccess}, RateLimit: &rate}); err != nil {
		return "", err
	}
	account, err := sampleAccount(ctx, admin)
	if err != nil {
		return "", err
	}
	catalogAdmin := &catalog.Admin{Pool: pool, Actor: actor}
	if _, err := catalogAdmin.Import(ctx, bytes.NewReader(sampleCatalog), nil); err != nil {
		return "", fmt.Errorf("import the sample catalog: %w", err)
	}
	if err := meetDependencies(ctx, pool, catalogAdmin); err != nil {
		return "", err
	}
	if err := revokeKeys(ctx, admin, account.ID); err != nil {
		return "", err
	}
	issued, err := admin.CreateKey(ctx, account.ID, auth.Terms{Name: new(keyName), Scopes: auth.Scopes})
	if err != nil {
		return "", err
	}
	p := past{pool: pool, account: account}
	return issued.Key, p.write(ctx, issued.ID)
}

func sampleAccount(ctx context.Context, admin *auth.Admin) (auth.Account, error) {
	accounts, err := admin.Accounts(ctx)
	if err != nil {
		return auth.Account{}, err
	}
	for _, a := range accounts {
		if a.Name == accountName && a.PlanCode == planCode {
			return a, nil
		}
	}
	return admin.CreateAccount(ctx, accountName, planCode)
}

// revokeKeys revokes the keys of earlier starts.
func revokeKeys(ctx context.Context, admin *auth.Admin, account store.ID) error {
	keys, err := admin.Keys(ctx, &account)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Name != keyName || k.RevokedAt != nil {
			continue
		}
		if _, err := admin.RevokeKey(ctx, k.ID); err != nil {
			return err
		}
	}
	return nil
}

// meetDependencies records the dependencies of readyProviders that have no record yet as met.
func meetDependencies(ctx context.Context, pool *pgxpool.Pool, admin *catalog.Admin) error {
	providers, err := catalog.Providers(ctx, pool)
	if err != nil {
		return err
	}
	for _, p := range providers {
		for _, d := range p.Dependencies {
			if d.ChangedAt != nil || !slices.Contains(readyProviders, p.Code) {
				continue
			}
			if err := admin.SetDependency(ctx, p.Code, d.Name, true, "sample data of aiv demo; not checked"); err != nil {
				return err
			}
		}
	}
	return nil
}
