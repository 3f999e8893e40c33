package gateway

import (
	"context"
	"net/http"

	"aiv/gateway/wire"
	"aiv/insights/brands"
	"aiv/store"
)

// brandDocument is the response of GET /v1/brands/{id} and an item of GET /v1/brands.
type brandDocument struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases"`
	Domains   []string `json:"domains"` // hosts, or a host and a path
	Exclude   []string `json:"exclude"` // phrases in which a name does not count
	MatchCase bool     `json:"match_case"`
	Status    string   `json:"status"`
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
}

// newBrandDocument returns the wire form of a brand. Its lists are never null.
func newBrandDocument(b *brands.Brand) brandDocument {
	return brandDocument{ID: b.ID.Text("brand"), Kind: b.Kind, Name: b.Name, Aliases: b.Aliases, Domains: b.Domains, Exclude: b.Exclude,
		MatchCase: b.MatchCase, Status: b.Status, CreatedAt: store.FormatTime(b.CreatedAt), UpdatedAt: store.FormatTime(b.UpdatedAt)}
}

var brandList = list[brands.Filter, brands.Brand]{
	filters: []filter[brands.Filter]{
		wordFilter("status", brands.Statuses, func(f *brands.Filter) *string { return &f.Status }),
		wordFilter("kind", brands.Kinds, func(f *brands.Filter) *string { return &f.Kind }),
	},
	read:    ofAccount(brands.List),
	sortKey: func(b *brands.Brand) store.Position { return store.Position{Time: b.CreatedAt, ID: b.ID} },
	append:  encoded(newBrandDocument),
}

func (g *Gateway) readBrand(x *exchange, r *http.Request) error {
	b, err := g.getBrand(x, r)
	if err != nil {
		return err
	}
	x.write(http.StatusOK, "application/json", wire.Encode(newBrandDocument(b)))
	return nil
}

// getBrand reads the brand in the path.
func (g *Gateway) getBrand(x *exchange, r *http.Request) (*brands.Brand, error) {
	id, err := brandID(r)
	if err != nil {
		return nil, err
	}
	return readOne(g, x, func(ctx context.Context, db store.Querier) (*brands.Brand, error) {
		return brands.Get(ctx, db, x.credential().AccountID, id)
	})
}

// createBrand responds with the new brand. It passes the pool for reads to package brands, so that changes of brands
// take no connections from counting and runs.
func (g *Gateway) createBrand(x *exchange, r *http.Request) error {
	body, err := readBrandBody(x, r, newBrandMembers, nil)
	if err != nil {
		return err
	}
	return body.refused(g.respondInReads(x, http.StatusCreated, func(ctx context.Context) (any, error) {
		b, err := brands.Create(ctx, g.cfg.Reads, x.credential().AccountID, g.cfg.NewID(), body.Change)
		if err != nil {
			return nil, err
		}
		x.set("Location", Base+"?path=/v1/brands/"+b.ID.Text("brand"))
		return newBrandDocument(b), nil
	}))
}

// changeBrand reads the stored brand only to check names that have faults.
func (g *Gateway) changeBrand(x *exchange, r *http.Request) error {
	body, err := readBrandBody(x, r, brandChangeMembers, func() bool {
		b, err := g.getBrand(x, r)
		return err != nil || b.MatchCase // a brand that cannot be read: only faults that do not depend on match_case
	})
	if err != nil {
		return err
	}
	id, err := brandID(r)
	if err != nil {
		return err
	}
	// Update checks the changed brand as a whole, while the account's brands are locked.
	return body.refused(g.respondInReads(x, http.StatusOK, func(ctx context.Context) (any, error) {
		return asDocument(newBrandDocument)(brands.Update(ctx, g.cfg.Reads, x.credential().AccountID, id, body.Change))
	}))
}

func brandID(r *http.Request) (store.ID, error) { return pathID(r, "brand", brands.ErrNotFound) }
