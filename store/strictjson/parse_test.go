package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// testLimits are the limits of the public API.
var testLimits = Limits{Depth: 16, Values: 10_000}

var longName = strings.Repeat("n", 63)

// usualEnvelope is the body of a typical POST {base_url}.
const usualEnvelope = `{"path":"/v1/runs","method":"POST","body":{"model_ids":["model-01"],` +
	`"question_ids":["question-001","question-002"],"repetitions":3,"measurement_type":"grounded",` +
	`"locale":"it-IT","country":"IT","language":"it"}}`

// accepted are documents that Parse reads as encoding/json does.
var accepted = []string{
	"null", "true", "false", "0", "-0", "120", "[3.0,3e0,3E+2,-1.50e-7,0.10,1e999]", "123456789012345678901234567890",
	`""`, `"it-IT"`, `"perché 日本 😀"`, `"\"\\\/\b\f\n\r\t"`, `"a\/b\/c"`, `"\u0061\u00E8\u65e5\u001f"`,
	`"\ud83d\uDE00!"`,
	"\"\ufffd\\ufffd\"", // U+FFFD is a character
	"\"\ufeff\"",
	"\"\x7f\"", // no control character to JSON
	"\"\ufdcf\ufdf0\ufffd\U0001fffd\U00020000\"", // edges of the noncharacters
	"[]", "{ }", "[2,1,[],[2]]", `{"b":1,"a":{"b":null},"c":[{}]}`,
	`{"path":1,"Path":2,"PATH":3}`,
	`{"è":1,"e` + "\u0300" + `":2}`, // names are not normalized
	`{"a":{"a":1}}`, `{"":1,"\u0061\n":2}`,
	" \t\r\n[ 1 ,\n{ \"a\" : 2 , \"b\" : 3 } ]\r\n",
	usualEnvelope,
	// The bounds themselves.
	strings.Repeat("[", testLimits.Depth) + strings.Repeat("]", testLimits.Depth),
	"[" + strings.Repeat("0,", testLimits.Values-2) + "0]",
	wideObject(testLimits.Values - 1),
}

func TestParseAccepts(t *testing.T) {
	for _, text := range accepted { // FuzzParse compares what is read
		if _, err := Parse(text, testLimits); err != nil {
			t.Errorf("Parse(%.80s): %v", text, err)
		}
	}
}

// TestValue: members and items have the order in which they were sent.
func TestValue(t *testing.T) {
	got, err := Parse(`{"b":"x","a":[3.0,null,true],"B":{}}`, testLimits)
	array := Value{Kind: KindArray, Items: []Value{{Kind: KindNumber, Text: "3.0"}, {}, {Kind: KindBool, Text: "true"}}}
	want := Value{Kind: KindObject, Members: []Member{{"b", Value{Kind: KindString, Text: "x"}}, {"a", array}, {"B", Value{Kind: KindObject}}}}
	diff := cmp.Diff(want, got, cmpopts.EquateEmpty())
	if err != nil || diff != "" || got.Member("B").Kind != KindObject || got.Member("A") != nil {
		t.Errorf("%v (-want +got):\n%s\nmembers B and A: %v, %v", err, diff, got.Member("B"), got.Member("A"))
	}
}

// refused are documents that Parse refuses by rules that encoding/json does not have, and the errors, which clients get.
var refused = []struct{ in, want string }{
	{" \n\t", `at byte 3: the document is empty`},
	{"\ufeff{}", `at byte 0: the document begins with a byte order mark`},
	{"{\x00}\x00", `at byte 1: expected a member name in double quotes, found '\x00'`}, // UTF-16
	{"\"\ufffd perch\xe9\"", `at byte 10: byte 0xe9 is not valid UTF-8 here`},          // Latin-1
	{"{}\xe2\x82", `at byte 2: byte 0xe2 is not valid UTF-8 here`},
	{strings.Repeat("x", 500), `at byte 0: "` + strings.Repeat("x", 64) + `…" is not a JSON value`},
	{`1.`, `at byte 2: expected a digit after a decimal point, but the document ends`},
	{"\"a\x1fb\"", `at byte 2: control character U+001F in a string must be escaped`},
	{`{"\u0000":1}`, `at byte 2: \u0000 is not allowed in a string`},
	{`"a\ud800"`, `at byte 2: \ud800 is half of a surrogate pair`},
	{`"\ud800\ud800"`, `at byte 1: \ud800 is half of a surrogate pair`},
	{`"\uDC00"`, `at byte 1: \udc00 is half of a surrogate pair`},
	{`"\ud800dc00"`, `at byte 1: \ud800 is half of a surrogate pair`},
	{`"\ud800\ufffd"`, `at byte 1: \ud800 is half of a surrogate pair`},
	{"\"\uffff\"", `at byte 1: noncharacter U+FFFF is not allowed in a string`},
	{"\"\ufdd0\"", `at byte 1: noncharacter U+FDD0 is not allowed in a string`},
	{"\"\U0010ffff\"", `at byte 1: noncharacter U+10FFFF is not allowed in a string`},
	{`"\ufdef"`, `at byte 1: noncharacter U+FDEF is not allowed in a string`},
	{`"\ud83f\udffe"`, `at byte 1: noncharacter U+1FFFE is not allowed in a string`},
	{`{"a":1,"\u0061":2}`, `at byte 7: member "a" appears twice`},
	{`[{"b":{"a":1,"c":{"a":1},"a":2}}]`, `at byte 25: member "a" appears twice`},
	{`{"` + longName + `èèè":1,"` + longName + `èèè":2}`, `at byte 75: member "` + longName + `…" appears twice`},
	{strings.Repeat("[", testLimits.Depth+1), `at byte 16: arrays and objects nest more than 16 deep`},
	{strings.Repeat(`{"a":`, 17), `at byte 80: arrays and objects nest more than 16 deep`},
	{"[" + strings.Repeat("0,", testLimits.Values), `at byte 19999: the document has more than 10000 values`},
}

// invalid are documents that FuzzParse tries, by the rules of encoding/json.
var invalid = strings.Fields(`{}{} {"a":NaN} -Infinity - [-] [1e] -01 +1 .5 1.e1 ["abc] "abc\" "\é" "\ "\u+123" "\u12 "\ud800\udc0"
	[1,] [,1] [1 [} {"a":1 {"a":1,} {"a"1} {"a":} {a:1} {"a":1;"b":2} nul tru truE null1 "a"b 'a' `)

func TestParseRefuses(t *testing.T) {
	for _, test := range refused {
		_, err := Parse(test.in, testLimits)
		if e, ok := errors.AsType[*Error](err); !ok || e.Error() != test.want {
			t.Errorf("Parse(%.80s)\n got %v\nwant %s", test.in, err, test.want)
		}
	}
}

// A name is found again whether the members are compared one by one or by a map, and at any position.
func TestParseRepeatedNameInWideObject(t *testing.T) {
	for _, n := range []int{fewNames - 1, fewNames, fewNames + 1, 1000} {
		object := wideObject(n)
		for _, first := range []int{0, n / 2, n - 1} {
			in := fmt.Sprintf(`%s,"member-%d":0}`, strings.TrimSuffix(object, "}"), first)
			_, err := Parse(in, testLimits)
			want := fmt.Sprintf(`at byte %d: member "member-%d" appears twice`, len(object), first)
			if err == nil || err.Error() != want {
				t.Errorf("%d members and number %d again: got error %v, want %s", n, first, err, want)
			}
		}
	}
}

func wideObject(members int) string {
	var b strings.Builder
	for i := range members {
		fmt.Fprintf(&b, `,"member-%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// FuzzParse holds Parse against encoding/json: what it accepts, encoding/json accepts and reads alike; what only
// it refuses, it refuses by a rule that encoding/json does not have.
func FuzzParse(f *testing.F) {
	for _, seed := range accepted {
		f.Add([]byte(seed))
	}
	for _, test := range refused {
		f.Add([]byte(test.in))
	}
	for _, seed := range invalid {
		f.Add([]byte(seed))
	}
	own := []string{
		"appears twice", "surrogate pair", `\u0000`, "noncharacter", "not valid UTF-8", "nest more than", "more than 10000 values",
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Parse(string(data), testLimits)
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var want any
		stdErr := d.Decode(&want)
		if stdErr == nil && !json.Valid(data) {
			stdErr = errors.New("more than one value")
		}
		if err == nil {
			if stdErr != nil {
				t.Fatalf("Parse accepts what encoding/json refuses: %v", stdErr)
			}
			if !reflect.DeepEqual(want, asAny(got)) { // which is faster than cmp.Diff
				t.Fatalf("encoding/json and Parse differ (-json +Parse):\n%s", cmp.Diff(want, asAny(got)))
			}
			return
		}

		e, ok := errors.AsType[*Error](err)
		isOwn := func(rule string) bool { return strings.Contains(e.Detail, rule) }
		switch {
		case !ok:
			t.Fatalf("the error is a %T, want a *Error", err)
		case e.Offset < 0 || e.Offset > len(data):
			t.Errorf("%v: the document has %d bytes", err, len(data))
		case !utf8.ValidString(e.Detail) || len(e.Detail) > 400:
			t.Errorf("the detail is %q, want at most 400 bytes of UTF-8", e.Detail)
		case stdErr == nil && !slices.ContainsFunc(own, isOwn):
			t.Errorf("encoding/json accepts what Parse refuses: %v", err)
		}
	})
}

// asAny returns what encoding/json would have made of v.
func asAny(v Value) any {
	switch v.Kind {
	case KindBool:
		return v.Text == "true"
	case KindNumber:
		return json.Number(v.Text)
	case KindString:
		return v.Text
	case KindArray:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = asAny(item)
		}
		return items
	case KindObject:
		members := make(map[string]any, len(v.Members))
		for _, m := range v.Members {
			members[m.Name] = asAny(m.Value)
		}
		return members
	}
	return nil
}

func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{"envelope": usualEnvelope, "wide object": wideObject(testLimits.Values - 1)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Parse(text, testLimits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAppendString: what is appended is JSON of the text, in which only what must be escaped is.
func TestAppendString(t *testing.T) {
	for text, want := range map[string]string{
		"": `""`, "a": `"a"`, "À日😀": `"À日😀"`, `a"b\c/`: `"a\"b\\c/"`, "\n\r\t\b": `"\n\r\t\u0008"`, "\x00\x1f\x7f<&>": `"\u0000\u001f` + "\x7f" + `<&>"`,
	} {
		if got := string(AppendString([]byte("x"), text)); got != "x"+want {
			t.Errorf("%q: got %s, want x%s", text, got, want)
		}
	}
}

func TestPlainPrefix(t *testing.T) {
	for n := range 20 { // bytes before the one that is tried
		for c := range 256 {
			for _, rest := range []string{"", "a", "\"\x00\xff\\aaaaaaaa"} {
				text := strings.Repeat("a~ !#[]\x7f", 3)[:n] + string([]byte{byte(c)}) + rest
				want := 0
				for want < len(text) && text[want] >= ' ' && text[want] < 0x80 && text[want] != '"' && text[want] != '\\' {
					want++
				}
				if got := plainPrefix(text); got != want {
					t.Fatalf("plainPrefix(%q) = %d, want %d", text, got, want)
				}
			}
		}
	}
}
