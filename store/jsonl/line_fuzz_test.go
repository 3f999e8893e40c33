package jsonl_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"aiv/store/jsonl"
)

// FuzzRead: whatever a file holds, a line that is taken without a fault is one object whose members encoding/json reads
// alike, and can be stored as text; nothing else is taken.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"s":"a","n":null,"l":["x"],"b":true,"i":3}`, `{"s":"\u0000","n":null,"l":[],"b":false,"i":0}`, `{"s":"\\u0000","n":"","l":[],"b":false,"i":-1}`,
		`{"s":1}`, `{"s":"a","s":"b"}`, `{"s":"a","\u0073":"b"}`, `{}`, `[]`, `null`, ``, "\n\n", `{"s":"a"`, `{"s":"a"} x`, `{"S":"a"}`, "{\"s\":\"\xff\"}",
		`{"s":"\ud800","n":null,"l":[],"b":true,"i":1e2}`, `{"s":null,"n":null,"l":null,"b":null,"i":null}`, "\ufeff{}", `{"i":9223372036854775808}`,
		"{\"s\":\"a\"}\r\n{\"s\":\"b\"}", `{"l":["\u0000"]}`, strings.Repeat("{", 20000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		type line struct {
			S string   `json:"s"`
			N *string  `json:"n"`
			L []string `json:"l"`
			B bool     `json:"b"`
			I int      `json:"i"`
		}
		var got []line
		numbers := make(map[int]bool)
		err := jsonl.Read(bytes.NewReader(file), nil, func(l *jsonl.Line) {
			numbers[l.Number] = true
			n := jsonl.FieldOrNull[string](l, "n")
			got = append(got, line{jsonl.Field[string](l, "s"), n, jsonl.Field[[]string](l, "l"), jsonl.Field[bool](l, "b"), jsonl.Field[int](l, "i")})
		})
		if len(numbers) != len(got) {
			t.Errorf("%d lines have %d numbers", len(got), len(numbers))
		}
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a word")
			}
			return
		}
		n := 0
		for text := range bytes.SplitSeq(file, []byte("\n")) {
			if text = bytes.TrimSpace(text); len(text) == 0 {
				continue
			}
			var want line
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(&want); err != nil {
				t.Fatalf("%q is taken, and encoding/json says %v", text, err)
			}
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got[n])
			if !bytes.Equal(a, b) {
				t.Errorf("%q is read as %s, by encoding/json as %s", text, b, a)
			}
			for _, s := range append([]string{got[n].S}, got[n].L...) {
				if strings.ContainsRune(s, 0) {
					t.Errorf("%q: U+0000 cannot be stored", text)
				}
			}
			n++
		}
		if n != len(got) {
			t.Errorf("%d lines were taken of %d", len(got), n)
		}
	})
}
