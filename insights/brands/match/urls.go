package match

import (
	"strconv"
	"strings"
)

// An address is a URL of http or https that was read as the URL of a citation (M14).
type address struct {
	host     string // as hostname returns it, or an IPv6 address without brackets
	ipv6     bool
	port     int    // -1: none, or the scheme's own
	userinfo bool   // there is an @ in the authority
	path     string // "" or begins with /; without . and .. segments
	query    string // with ? unless there is none
	fragment string // with # unless there is none
}

// readURL reads the URL of a citation as a subset of the WHATWG URL Standard, after it has removed what the
// sentence around it may have left. It reports false for what is not a citation.
func readURL(text string) (address, bool) {
	text = trimURL(text)
	scheme, rest, found := strings.Cut(text, ":")
	https := false
	switch slashes := len(rest) - len(strings.TrimLeft(rest, `/\`)); {
	case found && slashes >= 2 && equalFold(scheme, "https"):
		https, rest = true, rest[slashes:]
	case found && slashes >= 2 && equalFold(scheme, "http"):
		rest = rest[slashes:]
	// Without a scheme only what begins with a host under an existing top-level domain is a citation, so "see page 3"
	// is none.
	default:
		authority := text
		if end := strings.IndexAny(text, `/\?#`); end >= 0 {
			authority = text[:end]
		}
		host, port, _ := strings.Cut(authority, ":")
		if _, ok := readPort(port, true); !ok || !isHost(host) {
			return address{}, false
		}
		https, rest = true, text
	}
	return readAuthority(https, rest)
}

// trimURL removes tabs and line ends, spaces around the URL, and punctuation at its end.
func trimURL(text string) string {
	if strings.ContainsAny(text, "\t\n\r") {
		text = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(text)
	}
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	const brackets = "()[]{}"
	// Only the odd indexes are used: the closing brackets.
	var surplus [len(brackets)]int // of closing brackets
	counted := false
	for text != "" {
		switch c := text[len(text)-1]; c {
		case '.', ',', ';', ':', '!', '?', '\'', '"', '>':
			text = text[:len(text)-1]
			continue
		case ')', ']', '}':
			if !counted {
				counted = true
				for i := range len(text) {
					if k := strings.IndexByte(brackets, text[i]); k >= 0 {
						// k|1 is the closing bracket of the pair; it adds 1, and the opening one takes 1 away.
						surplus[k|1] += 2*(k&1) - 1
					}
				}
			}
			if k := strings.IndexByte(brackets, c); surplus[k] > 0 {
				surplus[k]--
				text = text[:len(text)-1]
				continue
			}
		}
		rest, found := strings.CutSuffix(text, "…")
		if !found {
			break
		}
		text = rest
	}
	return text
}

// readAuthority reads a URL from after its scheme and slashes.
func readAuthority(https bool, rest string) (a address, ok bool) {
	authority := rest
	if end := strings.IndexAny(rest, `/\?#`); end >= 0 {
		authority = rest[:end]
	}
	rest = rest[len(authority):]
	// What precedes the @ is a user name and a password.
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		a.userinfo, authority = true, authority[at+1:]
	}
	host, port := "", ""
	// An IPv6 address has colons, so the port is what follows its brackets.
	if strings.HasPrefix(authority, "[") {
		var closed bool
		host, port, closed = strings.Cut(authority[1:], "]")
		if !closed || host == "" || strings.Trim(host, "0123456789abcdefABCDEF:.") != "" {
			return address{}, false
		}
		a.ipv6, a.host = true, strings.ToLower(host)
		if port != "" && port[0] != ':' {
			return address{}, false
		}
		port = strings.TrimPrefix(port, ":")
	} else {
		// A second colon is in port, and readPort refuses it.
		host, port, _ = strings.Cut(authority, ":")
		if a.host, ok = Hostname(host); !ok {
			return address{}, false
		}
	}
	if a.port, ok = readPort(port, https); !ok {
		return address{}, false
	}
	// The fragment is cut first, because it may contain a ?.
	rest, a.fragment = cutBefore(rest, '#')
	rest, a.query = cutBefore(rest, '?')
	a.path = resolveDots(strings.ReplaceAll(rest, `\`, "/"))
	return a, true
}

// cutBefore splits s before the first c.
func cutBefore(s string, c byte) (before, after string) {
	if i := strings.IndexByte(s, c); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// readPort returns the port of a URL; -1: it has none, or the scheme's own.
func readPort(digits string, https bool) (port int, ok bool) {
	if strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	if digits == "" {
		return -1, true
	}
	// The bound on the length keeps Atoi from overflowing. "0" stands for the zeros that were trimmed.
	if digits = strings.TrimLeft(digits, "0"); len(digits) > len("65535") {
		return 0, false
	}
	port, err := strconv.Atoi("0" + digits)
	if err != nil || port > 65535 {
		return 0, false
	}
	if https && port == 443 || !https && port == 80 {
		port = -1
	}
	return port, true
}

// resolveDots resolves the segments . and .. of a path, which may be percent-encoded.
func resolveDots(path string) string {
	if !strings.Contains(path, "/.") && !strings.Contains(path, "/%2") {
		return path
	}
	segments := strings.Split(path, "/")[1:]
	kept := segments[:0]
	for i, segment := range segments {
		dots := strings.ReplaceAll(strings.ReplaceAll(segment, "%2e", "."), "%2E", ".")
		switch dots {
		case "..":
			kept = kept[:max(len(kept)-1, 0)]
		case ".":
		default:
			kept = append(kept, segment)
			continue
		}
		// A dot segment at the end leaves a slash, as in a/b/.. for a/.
		if i == len(segments)-1 {
			kept = append(kept, "")
		}
	}
	return "/" + strings.Join(kept, "/")
}
