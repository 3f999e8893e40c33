package match

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// maxWrappers bounds the wrappers around a URL that are removed.
const maxWrappers = 3

// readPage reads the URL of a citation and replaces wrappers, such as the redirects of search engines, by the URL
// that they contain.
func readPage(text string) (address, bool) {
	a, ok := readURL(text)
	if !ok {
		return a, false
	}
	for range maxWrappers {
		held, ok := a.unwrap()
		if !ok {
			break
		}
		a = held
	}
	return a, true
}

// unwrap returns the URL that a contains if a is one of the wrappers that M14 names.
func (a *address) unwrap() (address, bool) {
	if a.ipv6 {
		return address{}, false
	}
	switch a.host {
	case "google.com":
		if rest, ok := strings.CutPrefix(a.path, "/amp/s/"); ok {
			return readHeld("https://" + rest + a.query + a.fragment)
		}
		if a.path == "/url" {
			// q is also read if the parameter url holds no http or https URL.
			if held, ok := a.parameter("url"); ok {
				return held, true
			}
			return a.parameter("q")
		}
	case "l.facebook.com", "lm.facebook.com":
		if a.path == "/l.php" {
			return a.parameter("u")
		}
	case "duckduckgo.com":
		if a.path == "/l/" {
			return a.parameter("uddg")
		}
	case "bing.com":
		if a.path == "/ck/a" {
			// The value is a1 and the URL in base64url, with padding or without.
			encoded, ok := strings.CutPrefix(a.value("u"), "a1")
			decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(encoded, "="))
			if !ok || err != nil {
				return address{}, false
			}
			return readHeld(string(decoded))
		}
	}
	if sub, ok := strings.CutSuffix(a.host, ".cdn.ampproject.org"); ok && sub != "" {
		if rest, ok := strings.CutPrefix(a.path, "/c/s/"); ok {
			return readHeld("https://" + rest + a.query + a.fragment)
		}
		if rest, ok := strings.CutPrefix(a.path, "/c/"); ok {
			return readHeld("http://" + rest + a.query + a.fragment)
		}
	}
	return address{}, false
}

// parameter reads the URL that is the value of a parameter.
func (a *address) parameter(name string) (address, bool) { return readHeld(a.value(name)) }

// value returns the decoded value of the first parameter with a name.
func (a *address) value(name string) string {
	for part := range strings.SplitSeq(strings.TrimPrefix(a.query, "?"), "&") {
		if key, value, _ := strings.Cut(part, "="); decodeForm(key) == name {
			return decodeForm(value)
		}
	}
	return ""
}

// decodeForm decodes + and what is percent-encoded. A % that encodes nothing stays.
func decodeForm(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if b, ok := percentEncoded(s, i); ok {
			c = b
			i += 2
		} else if c == '+' {
			c = ' '
		}
		out = append(out, c)
	}
	return string(out)
}

// readHeld reads a URL that must have a scheme.
func readHeld(text string) (address, bool) {
	scheme, _, _ := strings.Cut(trimURL(text), ":")
	if !equalFold(scheme, "http") && !equalFold(scheme, "https") {
		return address{}, false
	}
	return readURL(text)
}

// isOpaque reports whether a is a page of the redirector whose URLs do not contain their target.
func (a *address) isOpaque() bool {
	below, ok := strings.CutPrefix(a.path, "/grounding-api-redirect/")
	return ok && below != "" && a.host == "vertexaisearch.cloud.google.com"
}
