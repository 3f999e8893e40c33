package main

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/insights/brands"
	"aiv/store"
)

// brandsGroup returns the commands of aiv brands.
func brandsGroup() cli.Command {
	return cli.Command{
		Name:    "brands",
		Summary: "Import and list the brands that answers are searched for",
		Commands: []cli.Command{
			{
				Name:     "import",
				Summary:  "Import a JSON Lines file of brands, completely or not at all",
				Usage:    "FILE|- [-json]",
				Examples: []string{"aiv brands import brands.jsonl", "aiv brands import - <brands.jsonl"},
				Run:      audited(brandsImport),
			},
			{
				Name:    "list",
				Summary: "List the brands by account, oldest first",
				Usage:   "[-account ID] [-status STATUS] [-json]",
				Examples: []string{
					"aiv brands list -status active",
					"aiv brands list -account acct_01k3s4x0a1fvt8s9w2y7b6c5d4 -json",
				},
				Run: audited(brandsList),
			},
		},
	}
}

// importedBrands counts the lines of a file. A line counts even if it changes nothing.
type importedBrands struct {
	Brands int `json:"brands"`
}

func brandsImport(ctx context.Context, c *call) error {
	return c.importFile(ctx, func(pool *pgxpool.Pool, file io.Reader, progress func(int)) (any, string, error) {
		n, err := (&brands.Admin{Pool: pool, Actor: c.actor()}).Import(ctx, file, progress)
		return importedBrands{n}, cli.Count(n, "brand", "brands"), err
	})
}

// A brand as aiv brands list prints it: the members of a line that aiv brands import reads, and what the service sets.
type brand struct {
	ID        string   `json:"id"`
	AccountID string   `json:"account_id"`
	Kind      string   `json:"kind"`
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases"`
	Domains   []string `json:"domains"`
	Exclude   []string `json:"exclude"`
	MatchCase bool     `json:"match_case"`
	Status    string   `json:"status"`
	Revision  int64    `json:"revision"` // of the account's brands
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
}

func brandOf(b *brands.ListedBrand) brand {
	return brand{b.ID.Text("brand"), b.AccountID.Text("acct"), b.Kind, b.Name, b.Aliases, b.Domains, b.Exclude, b.MatchCase, b.Status, b.Revision,
		store.FormatTime(b.CreatedAt), store.FormatTime(b.UpdatedAt)}
}

// brandsList is audited, unlike other lists: brands.Admin.List writes an audit record of each call.
func brandsList(ctx context.Context, c *call) error {
	var account *store.ID
	c.idFlag(&account, "account", "acct", "only the brands of the account with this `ID`")
	status := c.Flags.String("status", "", "only brands with this `STATUS`: "+strings.Join(brands.Statuses, " or "))
	if _, err := c.Parse(); err != nil {
		return err
	}
	if c.Given("status") {
		if err := c.known("-status", []string{*status}, brands.Statuses); err != nil {
			return err
		}
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		found, err := (&brands.Admin{Pool: pool, Actor: c.actor()}).List(ctx, account, *status)
		if err != nil {
			return err
		}
		all, rows := []brand{}, [][]string{{"ID", "ACCOUNT", "KIND", "NAME", "ALIASES", "DOMAINS", "STATUS", "REVISION"}}
		for i := range found {
			b := brandOf(&found[i])
			all = append(all, b)
			rows = append(rows, []string{b.ID, b.AccountID, b.Kind, b.Name, cli.List(b.Aliases), cli.List(b.Domains), b.Status,
				strconv.FormatInt(b.Revision, 10)})
		}
		return c.PrintList(all, rows, "There are no brands.")
	})
}
