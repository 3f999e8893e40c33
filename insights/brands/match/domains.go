package match

import (
	"errors"
	"fmt"
	"strings"
)

var errNoIPAddress = errors.New("must be a host name, not an IP address")

// Domain returns the form in which a brand's domain is saved (M14): a host in lower case, or a host and a path,
// without a / at its end. The text of the error is for customers.
func Domain(input string) (saved string, err error) {
	text := strings.TrimFunc(input, isSpace)
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	a, ok := readURL(text)
	switch {
	case !ok:
		return "", errors.New("must be a host such as example.com, or a host and a path")
	case a.ipv6: // also [0.] and [a.b], which without their brackets would be host names
		return "", errNoIPAddress
	case a.userinfo:
		return "", errors.New("must not contain @ before the path")
	case a.port >= 0:
		return "", errors.New("must not have a port")
	case a.query != "" || a.fragment != "":
		return "", errors.New("must not have a query or a fragment")
	}
	path := strings.TrimRight(a.path, "/")
	if err := checkHost(a.host, path); err != nil {
		return "", err
	}
	return a.host + path, nil
}

// checkHost returns why a host, with a path unless it is "", cannot be a domain of a brand.
func checkHost(host, path string) error {
	first, last := host, host
	labels := strings.Count(host, ".") + 1
	if labels > 1 {
		first, last = host[:strings.IndexByte(host, '.')], host[strings.LastIndexByte(host, '.')+1:]
	}
	hex, isHex := strings.CutPrefix(last, "0x")
	switch {
	// An IPv6 address has a colon. As browsers do, a host whose last label is a decimal or hexadecimal number is read
	// as an IPv4 address.
	case strings.Contains(host, ":"),
		last != "" && strings.Trim(last, "0123456789") == "",
		isHex && strings.Trim(hex, "0123456789abcdef") == "":
		return errNoIPAddress
	case labels == 1:
		return errors.New("must be a host of its own, not one label")
	case labels == 2 && secondLevels[first] && len(last) == 2 && strings.Trim(last, "abcdefghijklmnopqrstuvwxyz") == "":
		return fmt.Errorf("must be a host of its own below %s, which many sites share", host)
	case path == "" && sharedHosts[host]:
		return fmt.Errorf("must be a host of its own below %s, which many sites share, or have a path", host)
	}
	return nil
}

// DomainKey returns the key of a saved domain: two active brands may not have domains with one key.
func DomainKey(saved string) string {
	host, path := cutBefore(saved, '/')
	return host + pathKey(path)
}

// pathKey returns the form in which paths are compared with the path prefixes of domains: without ASCII case,
// whatever the percent-encoding is.
func pathKey(path string) string {
	key := []byte(normalizePercent(path))
	for i, c := range key {
		key[i] = lowerASCII(c)
	}
	return string(key)
}
