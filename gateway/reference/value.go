package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A valueView describes a value for readers.
type valueView struct {
	Kind    string // type and bounds
	About   string // of the schema that it refers to
	Enum    []string
	Pattern string
}

// value describes the values that a schema allows.
func (d *description) value(s schema) valueView {
	switch {
	case s.Ref != "":
		target := *resolve(d.Components.Schemas, s.Ref)
		if target.Properties != nil {
			return valueView{Kind: nameOf(s.Ref)}
		}
		// A schema without properties is described by its values.
		v := d.value(target)
		if target.Description != "" {
			v.About, v.Pattern = target.Description, "" // the description is easier to read
		}
		return v
	case len(s.AnyOf) > 0:
		v := d.value(s.AnyOf[0])
		// Only the kinds are joined. The other details are of the first alternative.
		for _, other := range s.AnyOf[1:] {
			v.Kind += " or " + d.value(other).Kind
		}
		return v
	}
	v := valueView{Enum: s.Enum, Pattern: s.Pattern}
	kinds := slices.Clone(s.Type)
	for i, kind := range kinds {
		if kind == "array" && s.Items != nil {
			item := d.value(*s.Items)
			kinds[i] = "array of " + plural(item.Kind)
			// The page shows the details of the items as the array's.
			v.Enum, v.About, v.Pattern = item.Enum, item.About, item.Pattern
		}
	}
	v.Kind = strings.Join(kinds, " or ") + bounds(&s)
	switch {
	case s.Const != "":
		v.Kind += " " + strconv.Quote(s.Const)
	case s.Format == "date-time":
		// This replaces the kind string.
		v.Kind = "time"
	}
	if s.Default != nil {
		v.Kind += fmt.Sprint(", default ", s.Default)
	}
	return v
}

// plural returns the plural of a kind such as "string" or "string, 1 to 128 characters"; schema names stay as they are.
func plural(kind string) string {
	word, rest, _ := strings.Cut(kind, ",")
	if word != strings.ToLower(word) {
		return kind
	}
	if rest != "" {
		rest = " (" + strings.TrimSpace(rest) + ")"
	}
	return word + "s" + rest
}

// bounds returns the bounds of a number, a text or an array, each after a comma, or "".
func bounds(s *schema) string {
	var text string
	for _, b := range []struct {
		least, most *int
		unit        string
	}{{s.Minimum, s.Maximum, ""}, {s.MinLength, s.MaxLength, " characters"}, {s.MinItems, s.MaxItems, " items"}} {
		switch {
		case b.least != nil && b.most != nil:
			text += ", " + thousands(*b.least) + " to " + thousands(*b.most) + b.unit
		case b.least != nil:
			text += ", " + thousands(*b.least) + " or more" + b.unit
		case b.most != nil:
			text += ", up to " + thousands(*b.most) + b.unit
		}
	}
	if s.UniqueItems {
		text += ", no duplicates"
	}
	return text
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
