// Package catalog knows what can be measured: models, questions, methodologies, and the providers with what each of them
// still depends on.
//
// It owns the tables methodologies, providers, provider_dependencies, models, questions and catalog_revision. The gateway
// reads it for the catalog routes, package checks for its checks, command aiv imports into it. Whatever changes it
// changes catalog_revision in the same transaction; readers compare that with the snapshot that they hold.
package catalog

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// RevisionSQL is the revision of the catalog, as an expression that another room's statement may carry along.
const RevisionSQL = `(SELECT revision FROM catalog_revision)`

// Dependencies are what every provider depends on. Each is unmet until an operator has recorded it as met.
var Dependencies = []string{"configuration", "secret", "contract", "legal_approval"}

// Grounded is the measurement type whose models search before they answer.
const Grounded = "grounded"

// A Model is something that answers questions.
type Model struct {
	ID               string
	Name             string
	Provider         string
	ProviderModel    string
	Status           string // active, deprecated or disabled
	MeasurementTypes []string
	Countries        []string // nil: all
	Languages        []string // nil: all
	GroundedSearch   bool     // whether the model supports it
	Unmet            []string // what its provider still lacks
}

// GroundedSearchAvailable tells whether grounded search can be used now: supported, and nothing unmet.
func (m *Model) GroundedSearchAvailable() bool { return m.GroundedSearch && len(m.Unmet) == 0 }

// Measures tells whether the model covers the measurement type.
func (m *Model) Measures(measurementType string) bool {
	return slices.Contains(m.MeasurementTypes, measurementType)
}

// Covers tells whether the model covers the country and the language. A language covers itself and its regions: it covers
// it-IT, but not the other way round (the basic filtering of RFC 4647, section 3.3.1).
func (m *Model) Covers(country, language string) (coversCountry, coversLanguage bool) {
	coversCountry = m.Countries == nil || slices.Contains(m.Countries, country)
	coversLanguage = m.Languages == nil || slices.ContainsFunc(m.Languages, func(l string) bool {
		return l == language || strings.HasPrefix(language, l) && language[len(l)] == '-'
	})
	return coversCountry, coversLanguage
}

// A Methodology says how runs of its measurement types are measured, and how large they may be.
type Methodology struct {
	Version          string
	Status           string // active or retired
	MeasurementTypes []string
	MaxRepetitions   int
	MaxJobs          int
}

// A Question is what models are asked. AccountID is nil when it is everybody's.
type Question struct {
	ID        string
	AccountID *store.ID
	Text      string
	Language  string
	Country   string
	Topic     string
	Tags      []string
	Status    string // active or archived
	CreatedAt time.Time
}

// A Catalog hands out snapshots of itself.
type Catalog struct {
	pool    *pgxpool.Pool
	current atomic.Pointer[Snapshot]
	loading sync.Mutex
}

// New returns the catalog of a database.
func New(pool *pgxpool.Pool) *Catalog { return &Catalog{pool: pool} }

// At returns the catalog of the given revision, which the caller has just read in the database, or of a later one. It
// asks the database only where the snapshot at hand is of another revision.
func (c *Catalog) At(ctx context.Context, revision int64) (*Snapshot, error) {
	s := c.current.Load()
	if s != nil && s.Revision == revision {
		return s, nil
	}
	c.loading.Lock()
	defer c.loading.Unlock()
	// Somebody has loaded while this caller waited; but may have begun before the change that this caller has seen.
	if now := c.current.Load(); now != s && now.Revision >= revision {
		return now, nil
	}
	s, err := load(ctx, c.pool)
	if err != nil {
		return nil, err
	}
	c.current.Store(s)
	return s, nil
}

// load reads the whole catalog but for the questions as one moment has it.
func load(ctx context.Context, pool *pgxpool.Pool) (s *Snapshot, err error) {
	s = &Snapshot{pool: pool}
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var batch pgx.Batch
		batch.Queue(`SELECT revision FROM catalog_revision`).QueryRow(func(row pgx.Row) error { return row.Scan(&s.Revision) })
		batch.Queue(selectModels).Query(func(rows pgx.Rows) (err error) {
			s.Models, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Model])
			return err
		})
		batch.Queue(selectMethodologies).Query(func(rows pgx.Rows) (err error) {
			s.Methodologies, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Methodology])
			return err
		})
		return tx.SendBatch(ctx, &batch).Close()
	})
	if err != nil {
		return nil, err
	}
	s.models = make(map[string]*Model, len(s.Models))
	for i := range s.Models {
		s.models[s.Models[i].ID] = &s.Models[i]
	}
	return s, nil
}
