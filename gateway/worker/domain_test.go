package worker

import (
	"strings"
	"testing"
)

func TestDomainOfCitation(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"HTTP://WWW.Example.ORG:8080/x":                 "example.org",
		"https://example.org../":                        "example.org",
		"https://example.org/100%":                      "example.org",
		"https://user:x@example.org?a=b":                "example.org",
		"https://[2001:db8::1]:443/":                    "2001:db8::1",
		"https://ｗｗｗ.Ｅxample。org/":                      "example.org",
		"https://İstanbul.example/":                     "xn--istanbul-o0e.example",
		"https://ex\u00adam\u200bple.org/":              "example.org",
		"https://ex：80.org/":                            "",
		"https://ü" + strings.Repeat("a", 55) + ".org/": "xn--" + strings.Repeat("a", 55) + "-oxf.org",
		"https://ü" + strings.Repeat("a", 56) + ".org/": "",
		"https://" + strings.Repeat("ü", 64) + ".org/":  "",
		"https://bücher.example/\u0085":                 "xn--bcher-kva.example",
		"https://\u200b/":                               "",
		"https://exa%mple.org/":                         "",
		"https://b%C3%BCcher.example/":                  "xn--bcher-kva.example",
		"https://b%FCcher.example/":                     "",
		"https://[::ü]/":                                "",
		"https://example.org/\x01":                      "",
		"ftp://example.org/":                            "",
		"example.org":                                   "",
	} {
		got, ok := Domain(address)
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", address, got, ok, want)
		}
	}
}
