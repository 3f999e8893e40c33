package catalog

import "aiv/store"

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
