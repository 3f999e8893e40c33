package request

import (
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway/problem"
	"aiv/store/strictjson"
)

func TestObjectReportsEachMember(t *testing.T) {
	word := regexp.MustCompile(`^[a-z]+$`)
	type read struct {
		Text, Matching    string
		Positive, Integer int64
		Unique            []string
	}
	good := `"text":"","matching":"a","positive":1,"integer":10,"unique":["a","b"]`
	for _, tt := range []struct {
		name, in string
		want     read
		faults   problem.Faults
	}{
		{"valid", `{` + good + `}`, read{"", "a", 1, 10, []string{"a", "b"}}, nil},
		{"larger than int64", `{"text":"","matching":"a","positive":9223372036854775808,"integer":10,"unique":["a"]}`,
			read{"", "a", math.MaxInt64, 10, []string{"a"}}, nil},
		{"no object", `[]`, read{}, problem.Faults{{Pointer: "#/body", Detail: "must be an object, not an array"}}},
		{"unknown members", `{` + good + `,"~a/b é":1}`, read{"", "a", 1, 10, []string{"a", "b"}},
			problem.Faults{{Pointer: "#/body/~0a~1b%20%C3%A9", Detail: "unknown member"}}},
		{"a long name", `{` + good + `,"` + strings.Repeat("é", 1000) + `":1}`, read{"", "a", 1, 10, []string{"a", "b"}},
			problem.Faults{{Pointer: "#/body", Detail: "has an unknown member " + strings.Repeat("é", 32) + "…"}}},
		{"missing members", `{}`, read{}, problem.Faults{
			{Pointer: "#/body/text", Detail: "is required"}, {Pointer: "#/body/matching", Detail: "is required"},
			{Pointer: "#/body/positive", Detail: "is required"}, {Pointer: "#/body/integer", Detail: "is required"},
			{Pointer: "#/body/unique", Detail: "is required"}}},
		{"wrong types", `{"text":null,"matching":1,"positive":"1","integer":"10","unique":{}}`, read{"", "1", 1, 10, nil}, problem.Faults{
			{Pointer: "#/body/text", Detail: "must be a string, not null"}, {Pointer: "#/body/matching", Detail: "must be a word"},
			{Pointer: "#/body/positive", Detail: "must be an integer of at least 1"}, {Pointer: "#/body/integer", Detail: "must be an integer from 0 to 20"},
			{Pointer: "#/body/unique", Detail: "must be an array of ids, not an object"}}},
		{"wrong values", `{"text":"x","matching":"A","positive":0,"integer":21,"unique":["a","a","A"]}`, read{"x", "A", 0, 21, []string{"a", "a", "A"}},
			problem.Faults{{Pointer: "#/body/matching", Detail: "must be a word"}, {Pointer: "#/body/positive", Detail: "must be an integer of at least 1"},
				{Pointer: "#/body/integer", Detail: "must be an integer from 0 to 20"}, {Pointer: "#/body/unique/1", Detail: "duplicates unique/0"},
				{Pointer: "#/body/unique/2", Detail: "must be a word"}}},
		{"too small", `{"text":"x","matching":"a","positive":-9223372036854775809,"integer":-1,"unique":["a"]}`, read{"x", "a", math.MinInt64, -1, []string{"a"}},
			problem.Faults{{Pointer: "#/body/positive", Detail: "must be an integer of at least 1"}, {Pointer: "#/body/integer", Detail: "must be an integer from 0 to 20"}}},
		{"not integers", `{"text":"x","matching":"a","positive":3.0,"integer":1e1,"unique":[]}`, read{"x", "a", 0, 0, nil},
			problem.Faults{{Pointer: "#/body/positive", Detail: "must be an integer of at least 1"}, {Pointer: "#/body/integer", Detail: "must be an integer from 0 to 20"},
				{Pointer: "#/body/unique", Detail: "must have 1 to 3 ids, not 0"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := strictjson.Parse(tt.in, strictjson.Limits{Depth: 16, Values: 100})
			if err != nil {
				t.Fatal(err)
			}
			var faults problem.Faults
			o := NewObject(&v, At("#/body"), &faults, "text", "matching", "positive", "integer", "unique")
			got := read{o.Text("text"), o.Matching("matching", word, "a word"), o.Positive("positive"), o.Integer("integer", 0, 20),
				o.UniqueIDs("unique", 3, word, "a word")}
			if diff := cmp.Diff(tt.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadParameters(t *testing.T) {
	const encoding, semicolon = "is not percent-encoded correctly", "contains a semicolon; parameters are separated by &, and ; in a value is written %3B"
	for query, want := range map[string]Parameters{
		"":               nil,
		"a=1&&b=2&":      {{Name: "a", Value: "1"}, {Name: "b", Value: "2"}},
		"a&b=&a=c=d":     {{Name: "a"}, {Name: "b"}, {Name: "a", Value: "c=d"}},
		"%61+b=c+%26%3B": {{Name: "a b", Value: "c &;"}},
		"=1&%zz=1&a=%zz": {{Fault: "a parameter has no name"}, {Name: "%zz", Fault: encoding}, {Name: "a", Fault: encoding}},
		"a=1;b=2&c;=%zz": {{Name: "a", Fault: semicolon}, {Name: "c;", Fault: semicolon}},
	} {
		if diff := cmp.Diff(want, ReadParameters(query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}
