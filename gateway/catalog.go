package gateway

import (
	"net/http"
	"slices"
	"sync"

	"aiv/catalog"
	"aiv/store"
)

// modelDocument is an item of GET /v1/catalog/models. Countries and languages are null if the model covers all.
type modelDocument struct {
	ID               string         `json:"id"`
	Name             string         `json:"name"`
	Provider         string         `json:"provider"`
	ProviderModel    string         `json:"provider_model"` // the provider's name for it
	Status           string         `json:"status"`
	MeasurementTypes []string       `json:"measurement_types"`
	Countries        []string       `json:"countries"`
	Languages        []string       `json:"languages"`
	GroundedSearch   groundedSearch `json:"grounded_search"`
}

// groundedSearch reports whether the model supports search, whether it may be used, and the unmet dependencies of its
// provider.
type groundedSearch struct {
	Supported bool     `json:"supported"` // by the model
	Available bool     `json:"available"` // supported, and nothing is unmet
	Unmet     []string `json:"unmet"`     // dependencies of the provider
}

// newModelDocument returns the wire form of a model.
func newModelDocument(m *catalog.Model) modelDocument {
	return modelDocument{
		ID: m.ID, Name: m.Name, Provider: m.Provider, ProviderModel: m.ProviderModel, Status: m.Status,
		MeasurementTypes: m.MeasurementTypes, Countries: m.Countries, Languages: m.Languages,
		GroundedSearch: groundedSearch{m.GroundedSearch, m.GroundedSearchAvailable(), m.Unmet},
	}
}

// modelList has no function read: the models are in memory, and readModels serves their pages from a cache.
var modelList = list[catalog.ModelFilter, catalog.Model]{
	filters: []filter[catalog.ModelFilter]{
		textFilter("provider", func(f *catalog.ModelFilter) *string { return &f.Provider }),
		wordFilter("status", catalog.ModelStatuses, func(f *catalog.ModelFilter) *string { return &f.Status }),
		formFilter("measurement_type", measurementType, func(f *catalog.ModelFilter) *string { return &f.MeasurementType }),
		boolFilter("grounded_search", func(f *catalog.ModelFilter) **bool { return &f.GroundedSearch }),
	},
	sortKey: func(m *catalog.Model) store.Position { return store.Position{Text: m.ID} },
	byText:  true,
	append:  encoded(newModelDocument),
}

// readModels responds with a page of the models.
func (g *Gateway) readModels(x *exchange, r *http.Request) error {
	ctx := g.deadline(x)
	// The snapshot has the revision of the admission or a later one, so a change of the catalog is seen at once.
	s, err := g.cfg.Catalog.At(ctx, x.admission.CatalogRevision)
	if err != nil {
		return err
	}
	key := modelPageKey{x.credential().AccountID, x.plain, x.tool != nil, x.params.Encode()}
	// Concurrent requests may encode the same page; the first one stays in the cache.
	page := g.models.get(s, key)
	if page == nil {
		if page, err = newModelPage(g, x, s); err != nil {
			return err
		}
		g.models.add(s, key, page)
	}
	return g.sendPage(x, r, *page)
}

// newModelPage reads the parameters and encodes a page. A request with faults gets no page, so only valid parameters
// are cached.
func newModelPage(g *Gateway, x *exchange, s *catalog.Snapshot) (*page, error) {
	var f catalog.ModelFilter
	selected, err := modelList.parameters(g, x, &f)
	if err != nil {
		return nil, err
	}
	models := s.List(f, selected)
	more := len(models) > selected.Limit
	p, err := modelList.page(g, x, models[:min(len(models), selected.Limit)], more)
	if err != nil {
		return nil, err
	}
	// The argument of defer is evaluated here, so this returns the pooled buffer and not the copy.
	defer g.reuse(p.body)
	p.body = slices.Clone(p.body) // a cached page keeps no more memory than it counts
	p.tag = tagOf(p.body)
	return &p, nil
}

// modelPages caches pages of the models of one snapshot of the catalog. Encoding a page of 50 models takes as long as
// the rest of the request. A page with the same key is the same until the catalog changes, so an entry is never stale;
// when the cache is full, all entries are dropped.
type modelPages struct {
	mu       sync.RWMutex
	snapshot *catalog.Snapshot
	pages    map[modelPageKey]*page
	size     int // bytes of the pages
}

// A modelPageKey is what a page depends on besides the snapshot: cursors belong to an account, links to a form of
// address.
type modelPageKey struct {
	account store.ID
	plain   bool
	tool    bool // bounds the size
	params  string
}

const maxModelPages = 4 << 20 // bytes

// get returns the page with a key, or nil if it is not cached for this snapshot.
func (c *modelPages) get(s *catalog.Snapshot, key modelPageKey) *page {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.snapshot != s {
		return nil
	}
	return c.pages[key]
}

// add caches a page. It drops the pages of another snapshot, which may be the newer one for a moment; the next request
// then replaces it again.
func (c *modelPages) add(s *catalog.Snapshot, key modelPageKey, p *page) {
	// An estimate: 256 bytes for the key, the page and the entry of the map.
	size := len(key.params) + len(p.body) + 256
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshot == s && c.pages[key] != nil {
		return // another request has added it meanwhile
	}
	if c.snapshot != s || c.size+size > maxModelPages {
		c.snapshot, c.pages, c.size = s, make(map[modelPageKey]*page), 0
	}
	c.pages[key] = p
	c.size += size
}
