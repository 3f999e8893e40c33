package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/cmd/aiv/internal/cli"
)

// A provider as the providers commands print it.
type (
	provider struct {
		Code         string       `json:"code"`
		Name         string       `json:"name"`
		Unmet        []string     `json:"unmet"`
		Dependencies []dependency `json:"dependencies"`
	}
	dependency struct {
		Name      string  `json:"name"`
		Met       bool    `json:"met"`
		Note      *string `json:"note"`
		ChangedAt *string `json:"changed_at"`
	}
)

func providerOf(p catalog.Provider) provider {
	dependencies := []dependency{}
	for _, d := range p.Dependencies {
		var note *string // every recorded one has a note
		if d.Note != "" {
			note = &d.Note
		}
		dependencies = append(dependencies, dependency{d.Name, d.Met, note, wireTimeOrNull(d.ChangedAt)})
	}
	return provider{p.Code, p.Name, p.Unmet(), dependencies}
}

func providersList(ctx context.Context, c *call) error {
	c.JSONFlag()
	c.databaseFlags()
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := catalog.Providers(ctx, pool)
		if err != nil {
			return err
		}
		providers := []provider{}
		for _, p := range found {
			providers = append(providers, providerOf(p))
		}
		return c.Print(providers, func(w io.Writer) {
			if len(providers) == 0 {
				fmt.Fprintln(w, "There are no providers; import them with aiv catalog import.")
				return
			}
			cli.Row(w, append([]string{"CODE", "NAME"}, upper(catalog.Dependencies)...)...)
			for _, p := range providers {
				cells := []string{p.Code, p.Name}
				for _, d := range p.Dependencies {
					cells = append(cells, metWord(d.Met))
				}
				cli.Row(w, cells...)
			}
		})
	})
}

func providersMet(ctx context.Context, c *call) error { return c.setDependency(ctx, true) }

func providersUnmet(ctx context.Context, c *call) error { return c.setDependency(ctx, false) }

func (c *call) setDependency(ctx context.Context, met bool) error {
	c.JSONFlag()
	c.databaseFlags()
	actor := c.actorFlag()
	note := c.Flags.String("note", "", "a `TEXT` that explains the change; never the secret itself")
	args, err := c.Parse("PROVIDER", "DEPENDENCY", "-note")
	if err != nil {
		return err
	}
	code, name := args[0], args[1]
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		if err := (&catalog.Admin{Pool: pool, Actor: actor()}).SetDependency(ctx, code, name, met, *note); err != nil {
			return err
		}
		found, err := catalog.Providers(ctx, pool)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(found, func(p catalog.Provider) bool { return p.Code == code })
		p := providerOf(found[i])
		return c.Print(p, func(w io.Writer) {
			fmt.Fprintf(w, "%s of provider %s is recorded as %s. Unmet dependencies: %s.\n", name, code, metWord(met), cli.List(p.Unmet))
		})
	})
}

func metWord(met bool) string {
	if met {
		return "met"
	}
	return "unmet"
}

func upper(words []string) []string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, strings.ToUpper(w))
	}
	return out
}
