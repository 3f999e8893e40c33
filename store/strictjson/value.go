package strictjson

// A Kind is one of the JSON types.
type Kind byte

// The kinds of values.
const (
	KindNull Kind = iota
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// A Value is a JSON value as it was sent. Only the fields of its kind are set.
type Value struct {
	Kind    Kind
	Text    string   // a string's decoded text; a number's literal as sent; "true" or "false"
	Items   []Value  // of an array
	Members []Member // of an object, in the order sent; no name twice
}

// A Member is one name and value of an object.
type Member struct {
	Name  string
	Value Value
}

// Member returns the value of the object's member with exactly this name, or nil.
func (v *Value) Member(name string) *Value {
	for i := range v.Members {
		if v.Members[i].Name == name {
			return &v.Members[i].Value
		}
	}
	return nil
}

// Describe returns the kind as an error text names it: "must be a string, not an array".
func (v *Value) Describe() string {
	switch v.Kind {
	case KindBool:
		return "a boolean"
	case KindNumber:
		return "a number"
	case KindString:
		return "a string"
	case KindArray:
		return "an array"
	case KindObject:
		return "an object"
	}
	return "null"
}
