package match_test

import (
	"testing"

	"aiv/insights/brands/match"
)

func TestIsHostName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"kovalt.com": true, "Kovalt.COM": true, "shop.kovalt.co.uk": true, "münchen.de": true, "пример.рф": true, "a-b.example.org": true,
		"": false, "com": false, "kovalt.": false, ".com": false, "kovalt..com": false, "kovalt.invalid1": false, "Kovalt. Shoes": false,
		"kovalt.com – shoes": false, "kovalt.com/shoes": false, "https://kovalt.com": false, "-a.com": false, "127.0.0.1": false, "a_b.com": false,
	} {
		if got := match.IsHostName(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
