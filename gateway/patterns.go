package gateway

import (
	"regexp"

	"aiv/catalog"
)

// A pattern is the form of a text in requests, and how error texts describe it.
type pattern struct {
	form *regexp.Regexp
	want string
}

// String returns the regular expression.
func (p pattern) String() string { return p.form.String() }

// The forms of the texts that bodies and query parameters have in common.
var (
	catalogID       = pattern{catalog.IDPattern, "an id of 1 to 128 letters, digits and . _ : / -"}
	locale          = pattern{regexp.MustCompile(`^[a-z]{2}-[A-Z]{2}$`), "a language and a region, such as it-IT"}
	country         = pattern{catalog.CountryPattern, "two upper-case letters, such as IT"}
	language        = pattern{catalog.LanguagePattern, "a language, such as it, or a language and a region, such as it-IT"}
	measurementType = pattern{catalog.MeasurementTypePattern, "1 to 64 of a-z, 0-9 and _, beginning with a letter, such as grounded"}
)
