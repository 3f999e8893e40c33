package jsonl_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"aiv/store/jsonl"

	"github.com/google/go-cmp/cmp"
)

// everything is a line with a member of each type that a Line reads.
type everything struct {
	Word, Text, String string
	List               []string
	Number             int
	Bool               bool
	Time               time.Time
	NullString         *string
	NullList           *[]string
	NullFloat          *float64
	NullTime           *time.Time
}

const whole = `{"kind":"b","title":"T","s":"","list":["x"],"n":7,"bool":true,"at":"2026-01-02T03:04:05Z",` +
	`"ns":null,"nl":["y"],"nf":1.5,"nt":null}`

func readEverything(l *jsonl.Line) everything {
	return everything{
		Word: jsonl.OneOf(l, "kind", "a", "b"), Text: jsonl.Text(l, "title"), String: jsonl.Field[string](l, "s"),
		List: jsonl.Field[[]string](l, "list"), Number: jsonl.Field[int](l, "n"), Bool: jsonl.Field[bool](l, "bool"),
		Time:       jsonl.Field[time.Time](l, "at"),
		NullString: jsonl.FieldOrNull[string](l, "ns"), NullList: jsonl.FieldOrNull[[]string](l, "nl"),
		NullFloat: jsonl.FieldOrNull[float64](l, "nf"), NullTime: jsonl.FieldOrNull[time.Time](l, "nt"),
	}
}

func TestLineFields(t *testing.T) {
	float, list := 1.5, []string{"y"}
	want := everything{
		Word: "b", Text: "T", List: []string{"x"}, Number: 7, Bool: true, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		NullList: &list, NullFloat: &float,
	}
	for name, text := range map[string]string{
		"as written":    whole,
		"with spaces":   strings.NewReplacer(`":`, `" : `, `,"`, ` ,	"`).Replace(whole),
		"with escapes":  strings.Replace(whole, `"title":"T"`, `"t\u0069tle":"\u0054"`, 1),
		"Windows lines": whole + "\r\n",
	} {
		var got []everything
		if err := jsonl.Read(strings.NewReader(text), func(l *jsonl.Line) { got = append(got, readEverything(l)) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]everything{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLineFaults(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{`"kind":"b"`, `"kind":"c"`, "kind must be one of a, b"},
		{`"kind":"b"`, `"kind":1`, "kind must be a string"},
		{`"kind":"b"`, `"kind":null`, "kind must not be null"},
		{`"kind":"b",`, ``, `missing member "kind"`},
		{`"kind":"b"`, `"Kind":"b"`, `missing member "kind"; unknown member "Kind"`},
		{`"title":"T"`, `"title":" \t"`, "title must not be empty"},
		{`"s":""`, `"s":["x"]`, "s must be a string"},
		{`["x"]`, `"x"`, "list must be an array of strings"},
		{`["x"]`, `[1]`, "list must be an array of strings"},
		{`["x"]`, `[null]`, "list must be an array of strings"},
		{`"n":7`, `"n":7.0`, "n must be an integer"},
		{`"n":7`, `"n":7e0`, "n must be an integer"},
		{`"n":7`, `"n":"7"`, "n must be an integer"},
		{`"n":7`, `"n":99999999999999999999`, "n must be an integer"},
		{`true`, `1`, "bool must be true or false"},
		{`"2026-01-02T03:04:05Z"`, `"2026-01-02"`, "at must be an RFC 3339 time"},
		{`"ns":null`, `"ns":1`, "ns must be a string or null"},
		{`["y"]`, `{}`, "nl must be an array of strings or null"},
		{`1.5`, `"1.5"`, "nf must be a number or null"},
		{`"nt":null`, `"nt":0`, "nt must be an RFC 3339 time or null"},
		{`"nt":null`, `"nt":null,"z":1,"y":1`, `unknown member "z"; unknown member "y"`},
		{`"n":7,"bool":true`, `"n":"7"`, `n must be an integer; missing member "bool"`},
	} {
		text := strings.Replace(whole, test.old, test.new, 1)
		err := jsonl.Read(strings.NewReader("\n"+text), func(l *jsonl.Line) { readEverything(l) })
		if got, want := fmt.Sprint(err), "line 2: "+test.want; got != want {
			t.Errorf("%s for %s:\n got %s\nwant %s", test.new, test.old, got, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"not an object", `[1]`, "line 1: not a JSON object"},
		{"half a surrogate pair", `{"k":"a\ud800b"}`, `line 1: at byte 7: \ud800 is half of a surrogate pair`},
		{"not JSON", ` kind: a`, `line 1: at byte 1: "kind" is not a JSON value`},
		{"cut short", `{"k":"a"`, `line 1: at byte 8: expected "," or "}", but the document ends`},
		{"two on one line", `{"k":"a"} {"k":"a"}`, "line 1: at byte 10: expected nothing after the value, found '{'"},
		{"a member twice", `{"k":"a","k":"b"}`, `line 1: at byte 9: member "k" appears twice`},
		{"not UTF-8", "{\"k\":\"\xff\"}", "line 1: at byte 6: byte 0xff is not valid UTF-8 here"},
		{"a character that PostgreSQL does not store", `{"k":"a\u0000"}`, `line 1: at byte 7: \u0000 is not allowed in a string`},
		{"each faulty line", "{}\n{\"k\":\"a\"}\n\n 7\n", "line 1: missing member \"k\"\nline 4: not a JSON object"},
	} {
		err := jsonl.Read(strings.NewReader(test.file), func(l *jsonl.Line) { jsonl.Field[string](l, "k") })
		if got := fmt.Sprint(err); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

func TestReadEmpty(t *testing.T) {
	for _, file := range []string{"", "\n", " \n\t\r\n\n"} {
		err := jsonl.Read(strings.NewReader(file), func(l *jsonl.Line) { t.Errorf("%q has a line %d", file, l.Number) })
		if err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func TestReadBounds(t *testing.T) {
	const most = 1 << 20
	lineOf := func(size int) string {
		return `{"k":"` + strings.Repeat("x", size-len(`{"k":""}`)) + `"}`
	}
	read := func(l *jsonl.Line) { jsonl.Field[string](l, "k") }
	if err := jsonl.Read(strings.NewReader(lineOf(most-1)+"\n"), read); err != nil {
		t.Errorf("a long line: %v", err)
	}
	err := jsonl.Read(strings.NewReader("{}\n"+lineOf(most+1)), read)
	if got, want := fmt.Sprint(err), "line 1: missing member \"k\"\nline 2: longer than 1048576 bytes"; got != want {
		t.Errorf("too long a line: got %s, want %s", got, want)
	}

	lines := 0
	err = jsonl.Read(strings.NewReader(strings.Repeat("{}\n", 1000)), func(l *jsonl.Line) { lines++; read(l) })
	if !strings.HasSuffix(err.Error(), "\nline 21 and those after it were not read") {
		t.Errorf("no error reports that the rest was not read: %v", err)
	}
	if got, want := strings.Count(err.Error(), "\n"), 20; got != want || lines != want {
		t.Errorf("of 1000 faulty lines %d were read and %d reported, want %d", lines, got, want)
	}

	err = jsonl.Read(io.MultiReader(strings.NewReader(`{"k":"a"}`+"\n"), iotest.ErrReader(io.ErrUnexpectedEOF)), read)
	if got, want := fmt.Sprint(err), io.ErrUnexpectedEOF.Error(); got != want {
		t.Errorf("a file that can't be read on: got %s, want %s", got, want)
	}
}

// After SkipRest the other members of a line are not reported as unknown.
func TestLineOfUnknownKind(t *testing.T) {
	err := jsonl.Read(strings.NewReader(`{"kind":"x","a":1}`), func(l *jsonl.Line) {
		jsonl.OneOf(l, "kind", "a", "b")
		if !l.Has("a") || l.Has("b") {
			t.Error("Has reports absent members, or does not report present ones")
		}
		l.SkipRest()
		l.Errorf("and %d more", 1)
	})
	if got, want := fmt.Sprint(err), "line 1: kind must be one of a, b; and 1 more"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
