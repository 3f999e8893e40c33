package webhooks

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// The faults of an endpoint's URL. Their texts complete a sentence that begins with the member's name.
var (
	errURLLength   = errors.New("must have 1 to 2048 characters")
	errURLText     = errors.New("must consist of visible ASCII characters; use percent-encoding, and xn-- labels in host names")
	errURLForm     = errors.New("must be an absolute URL with a host name and valid percent-encoding")
	errURLHTTPS    = errors.New("must begin with https://")
	errURLHTTP     = errors.New("must begin with https:// or http://")
	errURLUser     = errors.New("must not contain user information")
	errURLFragment = errors.New("must not contain a fragment")
	errURLPort     = errors.New("must use port 443, the default of https, or a port from 1024 to 65535; port 80, the default of http, is not allowed")
	errURLHost     = errors.New("must have a DNS name, an IPv4 address in dotted decimal form, or an IPv6 address in brackets as its host")
)

// parseURL returns a URL as it is stored, or an error that describes why an account cannot register it. With allowHTTP,
// http is accepted besides https.
//
// The scheme is case-insensitive [RFC 3986, 3.1] and stored in lower case, so that an account cannot register one URL
// twice in different spellings of its scheme. The rest is stored as sent.
//
// A host that some parsers read as a number, such as 0x7f.1 or 2130706433, is rejected, so that all parsers agree which
// host is meant. Whether the host's addresses are public is checked at each connection.
//
// [RFC 3986, 3.1]: https://www.rfc-editor.org/rfc/rfc3986#section-3.1
func parseURL(text string, allowHTTP bool) (string, error) {
	// Characters are checked first, so that the length in bytes is the length in characters.
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' || text[i] == '\\' {
			return "", errURLText
		}
	}
	if text == "" || len(text) > MaxURL {
		return "", errURLLength
	}
	// url.Parse would accept other forms, such as https:host.
	scheme, rest, found := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	switch {
	case found && scheme == "https":
	case found && scheme == "http" && allowHTTP:
	case allowHTTP:
		return "", errURLHTTP
	default:
		return "", errURLHTTPS
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return "", errURLForm
	case u.User != nil:
		return "", errURLUser
	case strings.Contains(text, "#"):
		return "", errURLFragment
	case !validHost(u):
		return "", errURLHost
	case !validPort(u):
		return "", errURLPort
	}
	return scheme + "://" + rest, nil
}

// validPort reports whether a URL has an allowed port. An empty port after a colon is refused, and http needs a port.
func validPort(u *url.URL) bool {
	if u.Port() == "" {
		return u.Scheme == "https" && !strings.HasSuffix(u.Host, ":")
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	return err == nil && u.Port()[0] != '0' && (port == 443 || port >= 1024)
}

// validHost reports whether the host has a form that all parsers understand equally.
func validHost(u *url.URL) bool {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		address, err := netip.ParseAddr(host)
		return err == nil && address.Zone() == "" // url.Parse has rejected IPv4
	}
	host = strings.TrimSuffix(host, ".")
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Is4()
	}
	if len(host) > 253 {
		return false
	}
	// One label is enough.
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if !validLabel(label) {
			return false
		}
	}
	// The URL Standard reads a host whose last label is a number as an IPv4 address, even if ParseAddr refuses it.
	return !isNumber(labels[len(labels)-1])
}

// validLabel reports whether a label may be in a host name. It allows underscores, which are in use, although RFC 1123
// does not.
func validLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, c := range []byte(label) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// isNumber reports whether a host that ends with this label is parsed as an IPv4 address by the URL Standard.
func isNumber(label string) bool {
	if strings.HasPrefix(label, "0x") || strings.HasPrefix(label, "0X") {
		return strings.Trim(label[2:], "0123456789abcdefABCDEF") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// hostOf returns the host name of a valid URL in a canonical form, by which requests are counted.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text // never of a stored URL
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().String()
	}
	return host
}
