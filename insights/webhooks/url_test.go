package webhooks

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("a", MaxURL-len("https://example.com/"))
	for _, test := range []struct {
		url  string
		want error
	}{
		{"https://example.com", nil},
		{"https://example.com:443/a?b=c&d=%20", nil},
		{"https://example.com:1024/", nil},
		{"https://example.com:65535/", nil},
		{"https://EXAMPLE.com./", nil},
		{"https://xn--bcher-kva.example/", nil},
		{"https://a_b.example/", nil},
		{"https://93.184.216.34/", nil},
		{"https://[2606:4700::1111]:8443/", nil},
		{"https://10.0.0.1/", nil}, // refused when it is connected to
		{long, nil},
		{long + "a", errURLLength},
		{"", errURLLength},
		{"https://example.com/ü", errURLText},
		{"https://bücher.example/", errURLText},
		{"https://example.com/a b", errURLText},
		{"https://example.com\\@evil.example/", errURLText},
		{"https://example.com/\n", errURLText},
		{"http://example.com:8080/", errURLHTTPS},
		{"HTTP://example.com:8080/", errURLHTTPS},
		{"HTTPSX://example.com/", errURLHTTPS},
		{"ftp://example.com/", errURLHTTPS},
		{"example.com", errURLHTTPS},
		{"//example.com/", errURLHTTPS},
		{"https:///path", errURLForm},
		{"https://", errURLForm},
		{"https://%zz/", errURLForm},
		{"https://[::1/", errURLForm},
		{"https://user@example.com/", errURLUser},
		{"https://user:secret@example.com/", errURLUser},
		{"https://@example.com/", errURLUser},
		{"https://example.com/#a", errURLFragment},
		{"https://example.com/#", errURLFragment},
		{"https://example.com:80/", errURLPort},
		{"https://example.com:22/", errURLPort},
		{"https://example.com:1023/", errURLPort},
		{"https://example.com:0/", errURLPort},
		{"https://example.com:0443/", errURLPort},
		{"https://example.com:65536/", errURLPort},
		{"https://example.com:/", errURLPort},
		{"https://2130706433/", errURLHost},
		{"https://0x7f000001/", errURLHost},
		{"https://0X7F000001/", errURLHost},
		{"https://0x/", errURLHost},
		{"https://127.1/", errURLHost},
		{"https://0177.0.0.1/", errURLHost},
		{"https://1.2.3.4.5/", errURLHost},
		{"https://example.1/", errURLHost},
		{"https://[fe80::1%25eth0]/", errURLHost},
		{"https://[127.0.0.1]/", errURLForm},
		{"https://a..b/", errURLHost},
		{"https://-a.example/", errURLHost},
		{"https://a-.example/", errURLHost},
		{"https://a,b.example/", errURLHost},
		{"https://" + strings.Repeat("a", 64) + ".example/", errURLHost},
		{"https://" + strings.Repeat("a.", 126) + "a/", nil},
		{"https://" + strings.Repeat("a.", 126) + "ab/", errURLHost}, // 254 characters
	} {
		stored, got := parseURL(test.url, false)
		if got != test.want {
			t.Errorf("%.60s: %v, want %v", test.url, got, test.want)
		}
		if got == nil && stored != test.url {
			t.Errorf("%.60s: stored as %.60s", test.url, stored)
		}
	}
	for _, test := range []struct {
		url  string
		want error
	}{
		{"http://127.0.0.1:8090/", nil},
		{"https://example.com/", nil},
		{"http://example.com/", errURLPort},
		{"ftp://example.com/", errURLHTTP},
	} {
		if _, got := parseURL(test.url, true); got != test.want {
			t.Errorf("with http: %s: %v, want %v", test.url, got, test.want)
		}
	}
	for text, want := range map[string]string{
		"HTTPS://EXAMPLE.com/A?B=HTTPS://C": "https://EXAMPLE.com/A?B=HTTPS://C",
		"Https://[2606:4700::ABCD]/%2F":     "https://[2606:4700::ABCD]/%2F",
		"HTTP://example.com:8080":           "http://example.com:8080",
	} {
		if got, err := parseURL(text, true); got != want || err != nil {
			t.Errorf("%s: stored as %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestHostOf(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://EXAMPLE.com.:8443/A":   "example.com",
		"https://1.2.3.4./":             "1.2.3.4",
		"https://[::FFFF:1.2.3.4]/":     "1.2.3.4",
		"https://[2606:4700:0:0::ABCD]": "2606:4700::abcd",
	} {
		if got := hostOf(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// FuzzParseURL: an accepted URL has one reading.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"https://example.com/", "https://[::1]:8443", "https://127.0.0.1", "https://a@b#c", "http://x:1", "HTTPS://x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stored, err := parseURL(text, false)
		if err != nil {
			return
		}
		if again, err := parseURL(stored, false); again != stored || err != nil || !strings.EqualFold(stored, text) {
			t.Fatalf("%q: stored as %q, and that as %q, %v", text, stored, again, err)
		}
		text = stored
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || len(text) > MaxURL {
			t.Fatalf("%q: %+v, %v", text, u, err)
		}
		host := hostOf(text)
		if strings.ToLower(host) != host || strings.HasSuffix(host, ".") {
			t.Fatalf("%q: host %q", text, host)
		}
		if _, err := netip.ParseAddr(host); err != nil && isNumber(host[strings.LastIndexByte(host, '.')+1:]) {
			t.Fatalf("%q: host %q is a number", text, host)
		}
	})
}
