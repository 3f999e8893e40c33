package catalog

import (
	"regexp"
	"sync"
)

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

// The patterns of strings in catalog files, request bodies and filters. Each is compiled when it is first used: to compile them
// takes a quarter of the time from the start of a command to its first statement.
var (
	IDPattern              = pattern(`^[A-Za-z0-9._:/-]{1,128}$`) // of models and questions
	CountryPattern         = pattern(`^[A-Z]{2}$`)
	LocalePattern          = pattern(`^[a-z]{2}-[A-Z]{2}$`)
	LanguagePattern        = pattern(`^[a-z]{2,3}(-[A-Z]{2})?$`)
	MeasurementTypePattern = pattern(`^[a-z][a-z0-9_]{0,63}$`)
	MethodologyPattern     = pattern(`^AIVM-[0-9]+\.[0-9]+$`)
	ProviderPattern        = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

func pattern(s string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(s) })
}
