package strictjson

import (
	"strings"
	"testing"
)

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
