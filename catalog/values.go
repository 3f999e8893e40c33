package catalog

import "regexp"

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
	IDPattern              = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`) // of models and questions
	CountryPattern         = regexp.MustCompile(`^[A-Z]{2}$`)
	LanguagePattern        = regexp.MustCompile(`^[a-z]{2,3}(-[A-Z]{2})?$`)
	MeasurementTypePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	MethodologyPattern     = regexp.MustCompile(`^AIVM-[0-9]+\.[0-9]+$`)
	ProviderPattern        = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)
