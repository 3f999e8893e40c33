package request

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
