package demo

import (
	"context"
	"errors"

	"aiv/insights/brands"
)

// A sampleBrand is a brand of the sample account, and how often sample answers about running shoes name it. Names,
// products and hosts are invented.
type sampleBrand struct {
	name, product, host string
	before, now         float64            // the share of answers that name it: twelve weeks ago, and now
	more                map[string]float64 // what models of a provider add to that
}

// sampleBrands are the brands of the sample account. The first one is its own.
var sampleBrands = []sampleBrand{
	{name: "Kestrivo", product: "Aeolo", host: "kestrivo.example", before: 0.25, now: 0.6,
		more: map[string]float64{"perplexity": 0.2, "openai": -0.1}},
	{name: "Tarvane", product: "Easy 4", host: "tarvane.example", before: 0.8, now: 0.75,
		more: map[string]float64{"openai": 0.1}},
	{name: "Ostrel", product: "Six", host: "ostrel.example", before: 0.65, now: 0.45,
		more: map[string]float64{"google": 0.2}},
	{name: "Brenova", product: "Terra", host: "brenova.example", before: 0.35, now: 0.35,
		more: map[string]float64{"perplexity": -0.2}},
	{name: "Quillane", product: "Wide", host: "quillane.example", before: 0.1, now: 0.3},
}

// rate returns the share of answers of a provider's models that name the brand. progress is 0 twelve weeks ago and
// 1 now.
func (b *sampleBrand) rate(provider string, progress float64) float64 {
	return b.before + progress*(b.now-b.before) + b.more[provider]
}

// createBrands creates the brands that do not exist. It changes no brand: those that exist may have been changed
// by requests.
func (d *past) createBrands(ctx context.Context) error {
	for i := range sampleBrands {
		b, kind := &sampleBrands[i], brands.Competitor
		if i == 0 {
			kind = brands.Own
		}
		id := d.id("brand", b.name, d.account.CreatedAt)
		if _, err := brands.Get(ctx, d.pool, d.account.ID, id); !errors.Is(err, brands.ErrNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		draft := brands.Change{Kind: &kind, Name: &b.name, Domains: []string{b.host}}
		if _, err := brands.Create(ctx, d.pool, d.account.ID, id, draft); err != nil {
			return err
		}
	}
	return nil
}
