package demo

import (
	"context"
	"errors"

	"aiv/insights/brands"
)

// A curve is the share of answers that name a brand, in each week of the past from the first one. The last value holds
// for the weeks after it, and for live answers.
type curve []float64

func (c curve) in(week int) float64 { return c[min(week, len(c))-1] }

// A sampleBrand is a brand of the sample account, and how often sample answers name it. Names, products and hosts are
// invented.
type sampleBrand struct {
	name, shoe, boot string
	aliases, exclude []string
	matchCase        bool
	host             string   // of its pages
	domains          []string // besides host
	usual            curve
	by               map[string]curve // of a provider's models, where it differs
}

// sampleBrands are the brands of the sample account. The first one is its own: it is named more and more often by the
// models of perplexity, and less by openai's. The last one is new.
var sampleBrands = []sampleBrand{
	{name: "Fernmark", shoe: "Aeolo", boot: "Cairn", aliases: []string{"FMK"}, host: "fernmark.example.com",
		domains: []string{shop + "/fernmark"}, usual: curve{0.55}, by: map[string]curve{
			"perplexity": {0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.35, 0.4, 0.5, 0.7, 0.85, 1},
			"openai":     {0.85, 0.85, 0.85, 0.85, 0.85, 0.85, 0.75, 0.7, 0.65, 0.4, 0.25, 0.1},
		}},
	{name: "Alderway", shoe: "Easy 4", boot: "Ridge", host: "alderway.example.org", usual: curve{0.7},
		by: map[string]curve{"openai": {0.8}}},
	{name: "Brisco", shoe: "Six", boot: "Moor", host: "brisco.example.net", usual: curve{0.5}},
	// Answers speak of the reader's stride and of an event, too. Neither is the brand.
	{name: "Stride", shoe: "Terra", boot: "Terra High", exclude: []string{"Stride Week"}, matchCase: true,
		host: "stride.example.com", usual: curve{0.35}, by: map[string]curve{"perplexity": {0.2}}},
	{name: "Quillane", shoe: "Wide", boot: "Wide Mid", host: "quillane.example.net",
		usual: curve{0, 0, 0, 0, 0, 0.1, 0.15, 0.2, 0.3, 0.35, 0.4}},
}

// shop has pages of several brands. One path of it is the own brand's.
const shop = "shop.example.net"

// rate returns the share of answers of a provider's models that name the brand.
func (b *sampleBrand) rate(provider string, week int) float64 {
	if c, ok := b.by[provider]; ok {
		return c.in(week)
	}
	return b.usual.in(week)
}

// createBrands creates the brands that do not exist. It changes no brand: those that exist may have been changed
// by requests.
func (d *past) createBrands(ctx context.Context) error {
	for i := range sampleBrands {
		b, kind := &sampleBrands[i], brands.Competitor
		if i == 0 {
			kind = brands.Own
		}
		id := d.brandID(b.name)
		if _, err := brands.Get(ctx, d.pool, d.account.ID, id); !errors.Is(err, brands.ErrNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		draft := brands.Change{
			Kind: &kind, Name: &b.name, Aliases: b.aliases, Domains: append([]string{b.host}, b.domains...),
			Exclude: b.exclude, MatchCase: &b.matchCase,
		}
		if _, err := brands.Create(ctx, d.pool, d.account.ID, id, draft); err != nil {
			return err
		}
	}
	return nil
}
