// Package demo fills a database with sample data for `aiv demo`: a plan, an account, a catalog, brands, runs of the
// past twelve weeks and the insights that follow from them. It owns no table: the data goes through the packages that
// do.
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
var readyProviders = []string{"openai", "anthropic", "google", "perplexity", "xai", "mistral"}

const (
	// A later start finds what an earlier one made by these names of the account, the plan and the key.
	actor       = "aiv demo"
	accountName = "Demo"
	planCode    = "demo"
	keyName     = "demo"
)

// handProvider is the provider whose jobs wait for a worker that the reader starts.
const handProvider = "mistral"

// Secrets are what Fill issues, and the id of the sample account's own brand.
type Secrets struct {
	Brand string
	Key   string // of the sample account
	Token string // of a worker for handProvider and the providers that the sample worker leaves
}

// Fill writes the sample data that are not in the database yet, revokes the secrets of earlier calls, and issues new
// ones. leave are the providers whose jobs the sample worker leaves.
func Fill(ctx context.Context, pool *pgxpool.Pool, leave ...string) (s Secrets, err error) {
	admin := &auth.Admin{Pool: pool, Actor: actor}
	rate := 600
	if err := admin.SetPlan(ctx, auth.Plan{Code: planCode, Features: []string{auth.APIAccess}, RateLimit: &rate}); err != nil {
		return s, err
	}
	account, err := sampleAccount(ctx, admin)
	if err != nil {
		return s, err
	}
	catalogAdmin := &catalog.Admin{Pool: pool, Actor: actor}
	if _, err := catalogAdmin.Import(ctx, bytes.NewReader(sampleCatalog), nil); err != nil {
		return s, fmt.Errorf("import the sample catalog: %w", err)
	}
	if err := meetDependencies(ctx, pool, catalogAdmin); err != nil {
		return s, err
	}
	if err := revokeKeys(ctx, admin, account.ID); err != nil {
		return s, err
	}
	// Only the hash of a key is stored, so each start needs a new key to print.
	issued, err := admin.CreateKey(ctx, account.ID, auth.Terms{Name: new(keyName), Scopes: auth.Scopes})
	if err != nil {
		return s, err
	}
	s.Key = issued.Key
	if s.Token, err = sampleWorker(ctx, admin, leave); err != nil {
		return s, err
	}
	p := past{pool: pool, account: account}
	s.Brand = p.brandID(sampleBrands[0].name).Text("brand")
	if err := p.createBrands(ctx); err != nil {
		return s, fmt.Errorf("create the sample brands: %w", err)
	}
	return s, p.write(ctx, issued.ID)
}

// sampleWorker revokes the workers of earlier starts and creates one.
func sampleWorker(ctx context.Context, admin *auth.Admin, leave []string) (token string, err error) {
	workers, err := admin.Workers(ctx)
	if err != nil {
		return "", err
	}
	for _, w := range workers {
		if w.Name == keyName && w.RevokedAt == nil {
			if _, err := admin.RevokeWorker(ctx, w.ID); err != nil {
				return "", err
			}
		}
	}
	_, token, err = admin.CreateWorker(ctx, keyName, append([]string{handProvider}, leave...))
	return token, err
}

// sampleAccount returns the account of earlier starts, or creates it. An account of the same name on another plan is
// left alone.
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
			// An existing record stays, because the user may have made it.
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
