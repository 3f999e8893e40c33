package jsonl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"aiv/store/jsonl"

	"github.com/google/go-cmp/cmp"
)

// whole is a line with a member of each type that a Line reads.
const whole = `{"kind":"b","title":"T","s":"","list":["x"],"n":7,"bool":true,"at":"2026-01-02T03:04:05Z",` +
	`"ns":null,"nl":["y"],"nf":1.5,"nt":null}`

func readWhole(l *jsonl.Line) []any {
	return []any{
		jsonl.OneOf(l, "kind", "a", "b"), jsonl.Text(l, "title"), jsonl.Field[string](l, "s"), jsonl.Field[[]string](l, "list"),
		jsonl.Field[int](l, "n"), jsonl.Field[bool](l, "bool"), jsonl.Field[time.Time](l, "at"), jsonl.FieldOrNull[string](l, "ns"),
		jsonl.FieldOrNull[[]string](l, "nl"), jsonl.FieldOrNull[float64](l, "nf"), jsonl.FieldOrNull[time.Time](l, "nt"),
	}
}

func TestLineFields(t *testing.T) {
	for _, text := range []string{
		whole,
		strings.NewReplacer(`":`, `" : `, `,"`, ` ,	"`, `"title":"T"`, `"t\u0069tle":"\u0054"`).Replace(whole) + "\r\n",
	} {
		var got []byte
		err := jsonl.Read(strings.NewReader(text), nil, func(l *jsonl.Line) { got, _ = json.Marshal(readWhole(l)) })
		if want := `["b","T","",["x"],7,true,"2026-01-02T03:04:05Z",null,["y"],1.5,null]`; err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestLineFaults(t *testing.T) {
	unknownKind := func(l *jsonl.Line) {
		jsonl.OneOf(l, "kind", "a", "b")
		if l.Has("a") && !l.Has("b") {
			l.SkipRest() // else the other members would be reported as unknown
		}
	}
	if err := jsonl.Read(strings.NewReader(`{"kind":"x","a":1}`), nil, unknownKind); fmt.Sprint(err) != "line 1: kind must be one of a, b" {
		t.Errorf("got %v", err)
	}
	for _, test := range []struct{ old, new, want string }{
		{`"kind":"b"`, `"kind":"c"`, "kind must be one of a, b"},
		{`"kind":"b"`, `"kind":null`, "kind must not be null"},
		{`"kind":"b"`, `"Kind":"b"`, `missing member "kind"; unknown member "Kind"`},
		{`"title":"T"`, `"title":" \t"`, "title must not be empty"},
		{`"s":""`, `"s":["x"]`, "s must be a string"},
		{`["x"]`, `"x"`, "list must be an array of strings"},
		{`["x"]`, `[null]`, "list must be an array of strings"},
		{`"n":7`, `"n":7.0`, "n must be an integer"},
		{`"n":7`, `"n":"7"`, "n must be an integer"},
		{`"n":7`, `"n":99999999999999999999`, "n must be an integer"},
		{`true`, `1`, "bool must be true or false"},
		{`"2026-01-02T03:04:05Z"`, `"2026-01-02"`, "at must be an RFC 3339 time"},
		{`["y"]`, `{}`, "nl must be an array of strings or null"},
		{`1.5`, `"1.5"`, "nf must be a number or null"},
		{`"nt":null`, `"nt":0`, "nt must be an RFC 3339 time or null"},
		{`"n":7,"bool":true`, `"n":"7"`, `n must be an integer; missing member "bool"`},
	} {
		text := strings.Replace(whole, test.old, test.new, 1)
		err := jsonl.Read(strings.NewReader("\n"+text), nil, func(l *jsonl.Line) { readWhole(l) })
		if got, want := fmt.Sprint(err), "line 2: "+test.want; got != want {
			t.Errorf("%s for %s:\n got %s\nwant %s", test.new, test.old, got, want)
		}
	}
}

// TestRead: which files are read. Package strictjson has the tests of what is JSON.
func TestRead(t *testing.T) {
	// readKeys reads a file whose lines have a member k, and returns how many there are, and the error.
	readKeys := func(file io.Reader) (lines int, err string) {
		return lines, fmt.Sprint(jsonl.Read(file, nil, func(l *jsonl.Line) {
			lines++
			jsonl.Field[string](l, "k")
		}))
	}
	const most = 1 << 20
	lineOf := func(size int) string {
		return `{"k":"` + strings.Repeat("x", size-len(`{"k":""}`)) + `"}`
	}
	for file, test := range map[string]struct {
		lines int // that are objects
		want  string
	}{
		" \n\t\r\n\n":           {0, "<nil>"},
		lineOf(most) + "\n":     {1, "<nil>"},
		"{}\n" + lineOf(most+1): {1, "line 1: missing member \"k\"\nline 2: longer than 1048576 bytes"},
		`{"k":"a"} {"k":"a"}`:   {0, "line 1: at byte 10: expected nothing after the value, found '{'"},
		"{}\n{\"k\":\"a\"}\n\n 7\n{\"k\":\"\\u0000\"}": {2,
			"line 1: missing member \"k\"\nline 4: not a JSON object\nline 5: at byte 6: \\u0000 is not allowed in a string"},
	} {
		if lines, err := readKeys(strings.NewReader(file)); lines != test.lines || err != test.want {
			t.Errorf("%.80q: %d lines\n got %s\nwant %s, %d lines", file, lines, err, test.want, test.lines)
		}
	}

	lines, err := readKeys(strings.NewReader(strings.Repeat("{}\n", 1000)))
	const rest = "\nline 21 and those after it were not read"
	if lines != 20 || strings.Count(err, "\n") != 20 || !strings.HasSuffix(err, rest) {
		t.Errorf("of 1000 faulty lines %d were read: %s", lines, err)
	}
	_, err = readKeys(io.MultiReader(strings.NewReader(`{"k":"a"}`+"\n"+`{"k`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if want := io.ErrUnexpectedEOF.Error(); err != want {
		t.Errorf("a file that can't be read on: got %s, want %s", err, want)
	}
}

// FuzzRead: whatever a file has, a line that is taken without a fault is one object whose members encoding/json reads
// alike; nothing else is taken.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"s":"a","n":null,"l":["x"],"b":true,"i":3}`, `{"s":"\u0000","n":null,"l":[],"b":false,"i":0}`,
		`{"s":"\\u0000","n":"","l":[],"b":false,"i":-1}`, `{"s":1}`, `{"s":"a","\u0073":"b"}`, `[]`, `null`, ``, "\n\n", `{"s":"a"`,
		`{"S":"a"}`, `{"s":"\ud800","n":null,"l":[],"b":true,"i":1e2}`, `{"s":null,"n":null,"l":null,"b":null,"i":null}`,
		`{"i":9223372036854775808}`, "{\"s\":\"a\"}\r\n{\"s\":\"b\"}", strings.Repeat("{", 20000),
	} {
		f.Add([]byte(seed))
	}
	type line struct {
		S string   `json:"s"`
		N *string  `json:"n"`
		L []string `json:"l"`
		B bool     `json:"b"`
		I int      `json:"i"`
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		var got []line
		err := jsonl.Read(bytes.NewReader(file), nil, func(l *jsonl.Line) {
			got = append(got, line{jsonl.Field[string](l, "s"), jsonl.FieldOrNull[string](l, "n"), jsonl.Field[[]string](l, "l"),
				jsonl.Field[bool](l, "b"), jsonl.Field[int](l, "i")})
		})
		if err != nil {
			return
		}
		var want []line
		for text := range bytes.SplitSeq(file, []byte("\n")) {
			if text = bytes.TrimSpace(text); len(text) == 0 {
				continue
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			var one line
			if err := d.Decode(&one); err != nil {
				t.Fatalf("%q is taken, and encoding/json reports %v", text, err)
			}
			want = append(want, one)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-encoding/json +Read):\n%s", file, diff)
		}
	})
}
