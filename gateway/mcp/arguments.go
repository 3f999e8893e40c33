package mcp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"aiv/gateway/problem"
	"aiv/gateway/request"
	"aiv/store/strictjson"
)

// Arguments are what a call passes to a tool, without those that are null.
type Arguments struct {
	Faults problem.Faults      // unknown, missing and mistyped arguments
	given  []strictjson.Member // in the order sent; Take removes them
	taken  []string            // the names passed to Take
}

// At is where the arguments are, in the pointers of faults.
const At = "#/arguments"

// read checks the types of arguments. What their values must be is left to the route, except where the route never sees
// them.
func (t *Tool) read(v *strictjson.Value) (a Arguments) {
	for i := range t.Arguments {
		if arg := &t.Arguments[i]; arg.Required && v.Member(arg.Name) == nil {
			a.Faults.Add(At+"/"+arg.Name, "is required")
		}
	}
	for _, m := range v.Members {
		arg := t.argument(m.Name)
		switch {
		case arg == nil:
			a.Faults.AddUnknown(At, m.Name)
		case m.Value.Kind == strictjson.KindNull && !arg.Required: // models send null for what they leave out
		default:
			arg.check(&m.Value, request.At(At).Member(m.Name), &a.Faults)
			a.given = append(a.given, m)
		}
	}
	return a
}

// kinds are the types of JSON Schema that tools.json uses, and how faults name them.
var kinds = map[string]struct {
	kind strictjson.Kind
	name string
}{
	"string":  {strictjson.KindString, "a string"},
	"boolean": {strictjson.KindBool, "true or false"},
	"integer": {strictjson.KindNumber, "an integer"},
	"array":   {strictjson.KindArray, "an array"},
}

// check adds the faults of a value.
func (s *Schema) check(v *strictjson.Value, at *request.Location, f *problem.Faults) {
	want := kinds[s.Type]
	switch {
	case v.Kind != want.kind:
		f.Add(at.String(), "must be "+want.name+", not "+v.Describe())
		return // with the items of an array, for which a scalar type has no schema
	case s.Type == "integer" && strings.ContainsAny(v.Text, ".eE"):
		f.Add(at.String(), "must be an integer")
	}
	seen := make(map[string]int) // indexes of words
	for i := range v.Items {
		item := &v.Items[i]
		s.Items.check(item, at.Item(i), f)
		// The words of a list are checked here because they are joined by commas, which a word could contain.
		if words := s.Items.Enum; words != nil && item.Kind == strictjson.KindString {
			if first, found := seen[item.Text]; found {
				f.Add(at.Item(i).String(), "duplicates "+at.Item(first).String())
			} else if slices.Contains(words, item.Text) {
				seen[item.Text] = i
			} else {
				f.Add(at.Item(i).String(), "must be one of "+strings.Join(words, ", "))
			}
		}
	}
}

// Take returns the value of an argument and removes it. It returns nil if the argument was not given.
func (a *Arguments) Take(name string) *strictjson.Value {
	a.taken = append(a.taken, name)
	v := a.find(name)
	if v != nil {
		// Arguments are passed by value and share the array, so it is copied.
		a.given = slices.DeleteFunc(slices.Clone(a.given), func(m strictjson.Member) bool { return m.Name == name })
	}
	return v
}

// find returns the value of an argument, or nil if it was not given.
func (a *Arguments) find(name string) *strictjson.Value {
	if i := slices.IndexFunc(a.given, func(m strictjson.Member) bool { return m.Name == name }); i >= 0 {
		return &a.given[i].Value
	}
	return nil
}

// TakeText is Take for a string. It returns "" if the argument was not given.
func (a *Arguments) TakeText(name string) string {
	if v := a.Take(name); v != nil {
		return v.Text
	}
	return ""
}

// TakeInteger is Take for an integer that the route does not see. It returns the default if the argument was not given,
// and adds a fault if the value is outside the bounds of the schema. The schema of the argument must have a default and
// both bounds.
func (a *Arguments) TakeInteger(t *Tool, name string) int {
	s := t.argument(name)
	v := a.Take(name)
	if v == nil {
		return int(*s.Default)
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	// A value of another type has a fault already.
	typed := v.Kind == strictjson.KindNumber && !strings.ContainsAny(v.Text, ".eE")
	if typed && (err != nil || n < *s.Minimum || n > *s.Maximum) {
		a.Faults.Add(At+"/"+name, fmt.Sprintf("must be an integer from %d to %d", *s.Minimum, *s.Maximum))
	}
	return int(n)
}

// TakeWords is Take for an array of words that the route does not see. It returns nil if the argument was not given,
// and adds a fault if the array is empty.
func (a *Arguments) TakeWords(name string) (words []string) {
	v := a.Take(name)
	if v == nil {
		return nil
	}
	for _, item := range v.Items {
		words = append(words, item.Text)
	}
	if v.Kind == strictjson.KindArray && words == nil {
		a.Faults.Add(At+"/"+name, "must have an item")
	}
	return words
}

// Parameters returns the arguments that are left as query parameters, and the default of those that have one. The words
// of an array become a list with commas.
func (a *Arguments) Parameters(t *Tool) (all request.Parameters) {
	for i := range t.Arguments {
		arg := &t.Arguments[i]
		// The route does not see a taken argument, so it gets no default either.
		if slices.Contains(a.taken, arg.Name) {
			continue
		}
		if v := a.find(arg.Name); v != nil {
			all = append(all, request.Parameter{Name: arg.Name, Value: text(v)})
		} else if arg.Default != nil {
			all = append(all, request.Parameter{Name: arg.Name, Value: strconv.FormatInt(*arg.Default, 10)})
		}
	}
	return all
}

// text returns a value in the form of a query parameter.
func text(v *strictjson.Value) string {
	if v.Kind != strictjson.KindArray {
		return v.Text
	}
	var words []string
	for i := range v.Items {
		words = append(words, v.Items[i].Text)
	}
	return strings.Join(words, ",")
}

// Body returns the arguments that are left as a body.
func (a *Arguments) Body() *strictjson.Value {
	return &strictjson.Value{Kind: strictjson.KindObject, Members: a.given}
}
