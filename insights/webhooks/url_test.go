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
	for want, urls := range map[error]string{
		// An address that is not public is refused when it is connected to.
		nil: `https://example.com https://example.com:443/a?b=c&d=%20 https://example.com:1024/ https://example.com:65535/
			https://EXAMPLE.com./ https://xn--bcher-kva.example/ https://a_b.example/ https://93.184.216.34/ https://10.0.0.1/
			https://[2606:4700::1111]:8443/ https://` + strings.Repeat("a.", 126) + "a/ " + long,
		errURLLength:   long + "a",
		errURLText:     `https://example.com/ü https://bücher.example/ https://example.com\\@evil.example/ ` + strings.Repeat("ü", MaxURL),
		errURLHTTPS:    `http://example.com:8080/ HTTP://example.com:8080/ HTTPSX://example.com/ ftp://example.com/ example.com //example.com/`,
		errURLForm:     `https:///path https:// https://%zz/ https://[::1/ https://[127.0.0.1]/`,
		errURLUser:     `https://user@example.com/ https://user:secret@example.com/ https://@example.com/`,
		errURLFragment: `https://example.com/#a https://example.com/#`,
		errURLPort: `https://example.com:80/ https://example.com:22/ https://example.com:1023/ https://example.com:0/
			https://example.com:0443/ https://example.com:65536/ https://example.com:/`,
		errURLHost: `https://2130706433/ https://0x7f000001/ https://0X7F000001/ https://0x/ https://127.1/ https://0177.0.0.1/
			https://1.2.3.4.5/ https://example.1/ https://[fe80::1%25eth0]/ https://a..b/ https://-a.example/ https://a-.example/
			https://a,b.example/ https://` + strings.Repeat("a", 64) + ".example/ https://" + strings.Repeat("a.", 126) + "ab/", // 254 characters
	} {
		for url := range strings.FieldsSeq(urls) {
			stored, got := parseURL(url, false)
			wantError(t, url, want, got)
			if got == nil {
				equal(t, url, stored, "stored URL")
			}
		}
	}
	for url, want := range map[string]error{"": errURLLength, "https://example.com/a b": errURLText, "https://example.com/\n": errURLText} {
		_, got := parseURL(url, false)
		wantError(t, url, want, got)
	}
	for url, want := range map[string]error{
		"http://127.0.0.1:8090/": nil, "https://example.com/": nil, "http://example.com/": errURLPort,
		"ftp://example.com/": errURLHTTP,
	} {
		_, got := parseURL(url, true)
		wantError(t, "with http: "+url, want, got)
	}
	for text, want := range map[string]string{
		"HTTPS://EXAMPLE.com/A?B=HTTPS://C": "https://EXAMPLE.com/A?B=HTTPS://C",
		"Https://[2606:4700::ABCD]/%2F":     "https://[2606:4700::ABCD]/%2F",
		"HTTP://example.com:8080":           "http://example.com:8080",
	} {
		got, err := parseURL(text, true)
		wantError(t, text, nil, err)
		equal(t, want, got, "stored URL")
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
