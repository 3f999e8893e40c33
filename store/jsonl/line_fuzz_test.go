package jsonl_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"aiv/store/jsonl"

	"github.com/google/go-cmp/cmp"
)

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
