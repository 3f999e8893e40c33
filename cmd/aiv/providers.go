package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/status"
	"aiv/runs/jobs"
	"aiv/store"
)

// providersGroup returns the commands of aiv providers.
func providersGroup() cli.Command {
	return cli.Command{
		Name:    "providers",
		Summary: "List, limit and pause providers, and record their dependencies as met or unmet",
		Commands: []cli.Command{
			{
				Name:     "list",
				Summary:  "List the providers and their dependencies",
				Usage:    "[-json]",
				Examples: []string{"aiv providers list"},
				Run:      reading(providersList),
			},
			{
				Name:     "met",
				Summary:  "Record a dependency of a provider as met",
				Usage:    "CODE DEPENDENCY -note TEXT [-json]",
				Examples: []string{"aiv providers met openai contract -note 'signed 2026-03-01, legal folder 17'"},
				Notes:    dependencyNote(),
				Run:      setDependency(true),
			},
			{
				Name:     "unmet",
				Summary:  "Record a dependency of a provider as unmet",
				Usage:    "CODE DEPENDENCY -note TEXT [-json]",
				Examples: []string{"aiv providers unmet openai secret -note 'rotated, the new one is not installed yet'"},
				Notes:    dependencyNote(),
				Run:      setDependency(false),
			},
			{
				Name:    "set",
				Summary: "Limit how many jobs of a provider are handed out, from the next claim on",
				Usage:   "CODE [-per-minute N|none] [-in-flight N|none] [-json]",
				Examples: []string{
					"aiv providers set openai -per-minute 600 -in-flight 50",
					"aiv providers set openai -per-minute none",
				},
				Run: audited(providersSet),
			},
			{
				Name:     "pause",
				Summary:  "Hand out no jobs of a provider, from the next claim on",
				Usage:    "CODE -note TEXT [-json]",
				Examples: []string{"aiv providers pause openai -note 'incident 12'"},
				Run:      setPause((*jobs.ProviderAdmin).Pause),
			},
			{
				Name:     "resume",
				Summary:  "End a provider's pause, whatever caused it",
				Usage:    "CODE -note TEXT [-json]",
				Examples: []string{"aiv providers resume openai -note 'incident 12 is over'"},
				Run:      setPause((*jobs.ProviderAdmin).Resume),
			},
		},
	}
}

// dependencyNote is the end of the help of commands with a DEPENDENCY argument.
func dependencyNote() string {
	return "\nDEPENDENCY is one of " + strings.Join(catalog.Dependencies, ", ") + ".\n"
}

// A provider as the providers commands print it.
type (
	provider struct {
		Code         string       `json:"code"`
		Name         string       `json:"name"`
		Unmet        []string     `json:"unmet"`
		Dependencies []dependency `json:"dependencies"`
		status.ProviderWork
	}
	dependency struct {
		Name      string  `json:"name"`
		Met       bool    `json:"met"`
		Note      *string `json:"note"`
		ChangedAt *string `json:"changed_at"`
	}
)

// readProviders returns the providers, or the one with a code.
func readProviders(ctx context.Context, pool *pgxpool.Pool, code string) ([]provider, error) {
	found, err := catalog.Providers(ctx, pool)
	if err != nil {
		return nil, err
	}
	states, err := jobs.ProviderStates(ctx, pool)
	if err != nil {
		return nil, err
	}
	// The keys of work are provider codes.
	work := make(map[string]status.ProviderWork, len(states))
	for _, s := range states {
		work[s.Code] = status.WorkOf(s)
	}
	providers := []provider{}
	for _, p := range found {
		if code == "" || p.Code == code {
			providers = append(providers, providerOf(p, work[p.Code]))
		}
	}
	return providers, nil
}

// providerOf joins what the catalog knows of a provider with the work that package jobs counts. A dependency that was
// never recorded is unmet, and has no note and no time.
func providerOf(p catalog.Provider, work status.ProviderWork) provider {
	dependencies := []dependency{}
	for _, d := range p.Dependencies {
		var note *string // every recorded one has a note
		if d.Note != "" {
			note = &d.Note
		}
		dependencies = append(dependencies, dependency{d.Name, d.Met, note, store.FormatTimeOrNil(d.ChangedAt)})
	}
	return provider{p.Code, p.Name, p.Unmet(), dependencies, work}
}

// providersList prints a column for each dependency, in the order of catalog.Dependencies: every provider has all of
// them.
func providersList(ctx context.Context, c *call) error {
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		providers, err := readProviders(ctx, pool, "")
		if err != nil {
			return err
		}
		header := append([]string{"CODE", "NAME"}, upper(catalog.Dependencies)...)
		rows := [][]string{append(header, "PER MINUTE", "IN FLIGHT", "PAUSED")}
		for _, p := range providers {
			row := []string{p.Code, p.Name}
			for _, d := range p.Dependencies {
				row = append(row, metWord(d.Met))
			}
			rows = append(rows, append(row, numberText(p.PerMinute, "none"), numberText(p.InFlight, "none"), cmp.Or(p.Paused(), "no")))
		}
		return c.PrintList(providers, rows, "There are no providers; import them with aiv catalog import.")
	})
}

// setDependency returns the Run function of a command that records a dependency as met or unmet.
func setDependency(met bool) func(context.Context, *cli.Call) error {
	return audited(func(ctx context.Context, c *call) error {
		note := c.Flags.String("note", "", "a `TEXT` that explains the change; never the secret itself")
		args, err := c.Parse("CODE", "DEPENDENCY", "-note")
		if err != nil {
			return err
		}
		code, name := args[0], args[1]
		if err := c.known("DEPENDENCY", []string{name}, catalog.Dependencies); err != nil {
			return err
		}
		return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
			if err := (&catalog.Admin{Pool: pool, Actor: c.actor()}).SetDependency(ctx, code, name, met, *note); err != nil {
				return err
			}
			found, err := readProviders(ctx, pool, code)
			if err != nil {
				return err
			}
			// SetDependency has found the provider, and providers are never deleted.
			p := found[0]
			return c.Print(p, func(w io.Writer) {
				fmt.Fprintf(w, "Dependency %s of provider %s is recorded as %s. Unmet dependencies: %s.\n", name, code, metWord(met), cmp.Or(strings.Join(p.Unmet, ", "), "none"))
			})
		})
	})
}

// providersSet changes the limits whose flags are given; Set tells an unchanged limit from a removed one.
func providersSet(ctx context.Context, c *call) error {
	var limits jobs.ProviderLimits
	c.limitFlag(&limits.PerMinute, "per-minute", "hand out at most `N` jobs in each UTC minute; none: no limit (default: unchanged)")
	c.limitFlag(&limits.InFlight, "in-flight", "let workers have at most `N` jobs at once; none: no limit (default: unchanged)")
	args, err := c.Parse("CODE")
	if err != nil {
		return err
	}
	if !limits.PerMinute.Set && !limits.InFlight.Set {
		return c.Wrong("nothing to set: give -per-minute or -in-flight")
	}
	return c.changeProvider(ctx, args[0], func(a *jobs.ProviderAdmin) error { return a.SetLimits(ctx, args[0], limits) })
}

// limitFlag declares a limit; none removes it.
func (c *call) limitFlag(to *jobs.ProviderLimit, name, usage string) {
	c.Flags.Func(name, usage, func(text string) error {
		to.Set, to.Value = true, nil
		if text == "none" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > jobs.MaxProviderLimit {
			return fmt.Errorf("must be a whole number from 0 to %d, or none", jobs.MaxProviderLimit)
		}
		to.Value = &n
		return nil
	})
}

// setPause returns the Run function of a command that pauses or resumes a provider.
func setPause(change func(a *jobs.ProviderAdmin, ctx context.Context, code, note string) error) func(context.Context, *cli.Call) error {
	return audited(func(ctx context.Context, c *call) error {
		note := c.Flags.String("note", "", "a `TEXT` that gives the reason")
		args, err := c.Parse("CODE", "-note")
		if err != nil {
			return err
		}
		return c.changeProvider(ctx, args[0], func(a *jobs.ProviderAdmin) error { return change(a, ctx, args[0], *note) })
	})
}

// changeProvider changes what limits a provider's jobs and prints its new state.
func (c *call) changeProvider(ctx context.Context, code string, change func(*jobs.ProviderAdmin) error) error {
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		if err := change(&jobs.ProviderAdmin{Pool: pool, Actor: c.actor()}); err != nil {
			return err
		}
		found, err := readProviders(ctx, pool, code)
		if err != nil {
			return err
		}
		// The change has found the provider, and providers are never deleted.
		p := found[0]
		return c.Print(p, func(w io.Writer) {
			cli.Row(w, fmt.Sprintf("Provider %s: limit per minute %s, limit in flight %s; %s.", // the note may be a worker's
				code, numberText(p.PerMinute, "none"), numberText(p.InFlight, "none"), cmp.Or(p.Paused(), "not paused")))
		})
	})
}

// metWord returns the state of a dependency, which is also the name of the command that records it.
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
