package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aiv/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Provider runs models. Its Dependencies have the order of the variable Dependencies.
type Provider struct {
	Code         string
	Name         string
	Dependencies []Dependency
}

// A Dependency is a condition for the use of a provider. It is unmet, without note and time, until an operator records
// it.
type Dependency struct {
	Name      string
	Met       bool
	Note      string     // who checked it, and how
	ChangedAt *time.Time // of the latest record
}

// Unmet returns the names of the provider's unmet dependencies.
func (p *Provider) Unmet() []string {
	unmet := []string{}
	for _, d := range p.Dependencies {
		if !d.Met {
			unmet = append(unmet, d.Name)
		}
	}
	return unmet
}

// Providers returns the providers, ordered by code.
func Providers(ctx context.Context, pool *pgxpool.Pool) ([]Provider, error) {
	rows, err := pool.Query(ctx, selectProviders, Dependencies)
	if err != nil {
		return nil, err
	}
	providers := []Provider{}
	var p Provider
	var d Dependency
	_, err = pgx.ForEachRow(rows, []any{&p.Code, &p.Name, &d.Name, &d.Met, &d.Note, &d.ChangedAt}, func() error {
		// Rows of a provider follow each other, one for each dependency.
		if n := len(providers); n == 0 || providers[n-1].Code != p.Code {
			providers = append(providers, p)
		}
		last := &providers[len(providers)-1]
		last.Dependencies = append(last.Dependencies, d)
		return nil
	})
	return providers, err
}

// SetDependency records that a dependency of a provider is met or unmet. The note gives the source.
func (a *Admin) SetDependency(ctx context.Context, provider, dependency string, met bool, note string) error {
	if !slices.Contains(Dependencies, dependency) {
		return fmt.Errorf("unknown dependency %q; a provider depends on %s", dependency, strings.Join(Dependencies, ", "))
	}
	if strings.TrimSpace(note) == "" {
		return errors.New("a note is required: who checked the dependency, and how")
	}
	action := "providers.unmet"
	if met {
		action = "providers.met"
	}
	return store.WithoutTimeouts(ctx, a.Pool, func(tx pgx.Tx) error {
		// On Citus the wait for rows that an import has locked would end after a second.
		if _, err := tx.Exec(ctx, lockCatalog); err != nil {
			return err
		}
		// The row is added or replaced; audit_log keeps the history.
		_, err := tx.Exec(ctx, setDependency, provider, dependency, met, note)
		if store.IsForeignKeyViolation(err) {
			return fmt.Errorf("there is no provider %q; see aiv providers list", provider)
		}
		if err != nil {
			return err
		}
		return a.record(ctx, tx, action, provider, map[string]any{"dependency": dependency, "note": note})
	})
}
