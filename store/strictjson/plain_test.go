package strictjson

import (
	"strings"
	"testing"
)

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
