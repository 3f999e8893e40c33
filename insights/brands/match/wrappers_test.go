package match

import "testing"

func TestHeldURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://google.com/url?q=%20https://kovalt.com/a":              "kovalt.com/a",
		"https://google.com/url?q=%0Ahttps://kovalt.com/a":              "kovalt.com/a",
		"https://google.com/url?q=https:%0D%0A//kovalt.com/a":           "kovalt.com/a",
		"https://google.com/url?q=%00https://kovalt.com/a":              "kovalt.com/a",
		"https://google.com/url?url=%0Akovalt.com&q=https://kovalt.com": "kovalt.com",
		"https://google.com/url?q=https://kovalt.com/%FC":               "kovalt.com/%FC",
		"https://google.com/url?q=https://m%C3%BCller.de/":              "xn--mller-kva.de",
		"https://google.com/url?q=https://m%FCller.de/":                 "google.com/url?q=https://m%FCller.de/",
		"https://bing.com/ck/a?u=a1aHR0cHM6Ly9t_GxsZXIuZGUv":            "bing.com/ck/a?u=a1aHR0cHM6Ly9t_GxsZXIuZGUv",
	} {
		if key, ok := pageKey(url); !ok || key != want {
			t.Errorf("%s: got %q, %v, want %q", url, key, ok, want)
		}
	}
}
