// Package catalog describes what can be measured: models, questions, methodologies, and providers with their
// dependencies.
//
// It owns the tables methodologies, providers, provider_dependencies, models, questions, question_tags,
// catalog_revision, own_questions, own_question_tags and own_question_accounts. The gateway reads it for the catalog
// routes and adds and changes own questions; package checks reads it for its checks; command aiv imports, exports and
// changes it. Every change of an operator increases catalog_revision in its own transaction, and readers compare that
// revision with the revision of the snapshot that they hold. Own questions are read from the database each time.
package catalog

import (
	"slices"
	"strings"
	"time"

	"aiv/store"
)

// A Model answers questions. It runs at a provider.
type Model struct {
	ID               string
	Name             string
	Provider         string // the provider's code
	ProviderModel    string // the provider's name for it
	Status           string // one of ModelStatuses
	MeasurementTypes []string
	Countries        []string // nil: all
	Languages        []string // nil: all
	GroundedSearch   bool     // whether the model supports it
	Unmet            []string // the provider's unmet dependencies, in the order of Dependencies
}

// GroundedSearchAvailable reports whether the model supports grounded search and its provider has no unmet dependency.
func (m *Model) GroundedSearchAvailable() bool { return m.GroundedSearch && len(m.Unmet) == 0 }

// Measures reports whether the model covers the measurement type.
func (m *Model) Measures(measurementType string) bool {
	return slices.Contains(m.MeasurementTypes, measurementType)
}

// Covers reports whether the model covers the country and the language. A language covers itself and its regions: it
// covers it-IT, but it-IT does not cover it (basic filtering, [RFC 4647] section 3.3.1).
//
// [RFC 4647]: https://www.rfc-editor.org/rfc/rfc4647#section-3.3.1
func (m *Model) Covers(country, language string) (coversCountry, coversLanguage bool) {
	coversCountry = m.Countries == nil || slices.Contains(m.Countries, country)
	coversLanguage = m.Languages == nil || slices.ContainsFunc(m.Languages, func(l string) bool {
		// A language that is not l and has the prefix l is longer, so the index is valid.
		return l == language || strings.HasPrefix(language, l) && language[len(l)] == '-'
	})
	return coversCountry, coversLanguage
}

// A Methodology defines how runs of its measurement types are measured, and limits their size.
type Methodology struct {
	Version          string
	Status           string // one of MethodologyStatuses
	MeasurementTypes []string
	MaxRepetitions   int // of each question, for each model
	MaxJobs          int // of a run
}

// A Question is sent to models. All accounts can use a shared question, and one account its own.
type Question struct {
	ID        string
	AccountID *store.ID // nil: shared by all accounts
	Text      string    // never changes; neither do Language and Country
	Language  string
	Country   string
	Topic     string
	Tags      []string
	Status    string    // one of QuestionStatuses
	CreatedAt time.Time // of its first import, or of the request that added it
}

// Grounded is the measurement type whose models search the web before they answer.
const Grounded = "grounded"

// Dependencies names what a provider depends on. A dependency is unmet until an operator records that it is met.
var Dependencies = []string{"configuration", "secret", "contract", "legal_approval"}

// Statuses that decide whether a run may use a model, question or methodology.
const (
	Active   = "active"
	Archived = "archived"
)

// The statuses of models, questions and methodologies.
var (
	ModelStatuses       = []string{Active, "deprecated", "disabled"}
	QuestionStatuses    = []string{Active, Archived}
	MethodologyStatuses = []string{Active, "retired"}
)

// The patterns of strings in catalog files, request bodies and filters.
var (
	IDPattern              = store.Pattern(`^[A-Za-z0-9._:/-]{1,128}$`) // of models and questions
	CountryPattern         = store.Pattern(`^[A-Z]{2}$`)
	LocalePattern          = store.Pattern(`^[a-z]{2}-[A-Z]{2}$`)
	LanguagePattern        = store.Pattern(`^[a-z]{2,3}(-[A-Z]{2})?$`)
	MeasurementTypePattern = store.Pattern(`^[a-z][a-z0-9_]{0,63}$`)
	MethodologyPattern     = store.Pattern(`^AIVM-[0-9]+\.[0-9]+$`)
	ProviderPattern        = store.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)
