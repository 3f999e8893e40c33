package match

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A host is a bare host in prose: visible[start:end].
type host struct {
	start, end int32
	inLabel    bool // of a link: then it is not a mention of the brand that owns it
}

// findAddresses finds the addresses in the visible characters of a unit (M9). Links become a space; bare hosts are
// added to hosts.
func (s *scratch) findAddresses(u *unit) {
	// s.hosts has the hosts of all units, one unit after the other.
	u.hostStart = int32(len(s.hosts))
	u.hostEnd = u.hostStart
	v := s.visible[u.start:u.end]
	// Most units have no sign of an address: a dot within a word or a colon before a slash.
	if !u.mayHaveAddress {
		return
	}
	// flags is indexed from the start of the unit, like v.
	s.classify(v)
	s.findHosts(v)
	scan := addressScan{v: v, flags: s.flags, hosts: s.found}
	for i := 0; i < len(v); {
		start, end, isLink := scan.next(i)
		if end == 0 {
			break
		}
		u.address = true
		if isLink {
			// The link keeps its length, so that indexes of what follows, and origins, stay valid.
			v[start] = ' '
			for k := start + 1; k < end; k++ {
				v[k] = gone
			}
		} else {
			s.hosts = append(s.hosts, host{start: u.start + int32(start), end: u.start + int32(end)})
		}
		i = end
	}
	u.hostEnd = int32(len(s.hosts))
}

// Bits of addressBytes. Each address has a dot in a word or a ://. Two characters in a row may be such a sign if the
// bits of the first & the bits of the second >> afterShift are not 0. Most units have none.
const (
	visibleByte uint8 = 1 << iota
	signDot
	signColon
	_
	_
	afterDot
	afterColon // a slash
	afterShift = 4
)

// addressBytes has the bits of each ASCII character: whether a sign of an address may begin or go on with it.
var addressBytes = func() (table [utf8.RuneSelf]uint8) {
	for c := range rune(utf8.RuneSelf) {
		table[c] = visibleByte
		if (!is(c, asciiPunct) || is(c, asciiLabel)) && !isSpace(c) {
			table[c] |= afterDot
		}
	}
	table['.'] |= signDot
	table[':'] |= signColon
	table['/'] |= afterColon
	return table
}()

// Properties of visible characters for addresses; the properties of ASCII characters are in asciiProperties.
func (s *scratch) classify(v []rune) {
	s.flags = slices.Grow(s.flags[:0], len(v))[:len(v)]
	// A mark has the class of its base, the last character that is no mark.
	base := other
	for i, r := range v {
		if r < utf8.RuneSelf {
			s.flags[i] = asciiProperties[r]
			base = classOf(r)
			continue
		}
		var flags uint8
		// Letters of other classes are not part of hosts: many such scripts put no space between a host and the prose
		// after it.
		letterOrDigit, mark := isLetterOrDigit(r), isMark(r)
		if !mark {
			base = classOf(r)
		}
		if letterOrDigit || mark {
			flags = asciiURLAfter
			if base == word {
				flags |= asciiLabel | asciiURLHost
			}
		}
		s.flags[i] = flags
	}
}

// findHosts sets s.found to the hosts of v, whether or not they turn out to be parts of other addresses. A host
// begins where a maximal run of label characters and dots begins, or after two or more dots in it, so an address
// before it does not change it.
func (s *scratch) findHosts(v []rune) {
	s.found = s.found[:0]
	inRun := func(i int) bool { return i < len(v) && (v[i] == '.' || s.flags[i]&asciiLabel != 0) }
	for i := 0; i < len(v); i++ {
		if !inRun(i) {
			continue
		}
		start := i
		for inRun(i) && !(v[i] == '.' && i+1 < len(v) && v[i+1] == '.') {
			i++
		}
		if hostStart, hostEnd := s.hostOf(v, start, i); hostEnd > 0 {
			s.found = append(s.found, span{int32(hostStart), int32(hostEnd)})
		}
	}
}

// Bounds of a host, in characters.
const (
	maxHost      = 253
	maxHostLabel = 63
)

// hostOf returns the host of the piece v[start:end], which has no two dots in a row; 0, 0: there is none.
func (s *scratch) hostOf(v []rune, start, end int) (hostStart, hostEnd int) {
	for start < end && (v[start] == '.' || v[start] == '-') {
		start++
	}
	for start < end && (v[end-1] == '.' || v[end-1] == '-') {
		end--
	}
	// hostEnd is after the last label so far that is a top-level domain: of "kovalt.com.nosuch" the host is
	// "kovalt.com".
	for label := start; label < end; {
		k := label
		for k < end && v[k] != '.' && k-label <= maxHostLabel {
			k++
		}
		if k == label || k-label > maxHostLabel || v[label] == '-' || v[k-1] == '-' || k-start > maxHost {
			break
		}
		if label > start && s.isTopLevel(v[label:k]) {
			hostEnd = k
		}
		label = k + 1
	}
	if hostEnd == 0 {
		return 0, 0
	}
	return start, hostEnd
}

// tldList is IANA's list of top-level domains: lower case, A-labels.
//
//go:embed tlds.txt
var tldList string

var (
	topLevel   = map[string]bool{}
	longestTLD int // characters
)

// The first line of the list is a comment with its version.
func init() {
	for line := range strings.Lines(tldList) {
		if tld := strings.TrimSpace(line); !strings.HasPrefix(tld, "#") {
			topLevel[tld] = true
			longestTLD = max(longestTLD, len(tld))
		}
	}
}

// isTopLevel reports whether a label is a top-level domain that does not mix capitals and lower-case letters, as
// Then in "Kovalt.Then".
func (s *scratch) isTopLevel(label []rune) bool {
	capital, lower := false, false
	for _, r := range label {
		capital = capital || isCapital(r)
		lower = lower || isLower(r)
	}
	return !(capital && lower) && s.isTopLevelInAnyCase(label)
}

// isTopLevelInAnyCase reports whether a label, in any case, is a top-level domain. Labels beyond ASCII are compared
// as A-labels.
func (s *scratch) isTopLevelInAnyCase(label []rune) bool {
	if len(label) > longestTLD {
		return false
	}
	s.key = s.key[:0]
	ascii := true
	for _, r := range label {
		ascii = ascii && r < utf8.RuneSelf
		s.key = utf8.AppendRune(s.key, unicode.ToLower(r))
	}
	if ascii {
		return topLevel[string(s.key)]
	}
	encoded, ok := punycode(string(s.key))
	return ok && topLevel["xn--"+encoded]
}

// An addressScan finds the addresses of a unit in order.
type addressScan struct {
	v     []rune
	flags []uint8
	hosts []span // that are not behind the scan

	noEmail int // no e-mail address begins before this index
}

// next returns the first address that begins at from or after it; end 0: there is none. A bare host is no link.
func (a *addressScan) next(from int) (start, end int, isLink bool) {
	for i := from; i < len(a.v); i++ {
		// Hosts that begin before i are inside an earlier address.
		for len(a.hosts) > 0 && int(a.hosts[0].start) < i {
			a.hosts = a.hosts[1:]
		}
		// No address begins with another character.
		if a.flags[i]&(asciiLabel|asciiLocal) == 0 {
			continue
		}
		// The first form that applies wins: www.kovalt.com is a link, although it is also a host.
		if end := a.url(i); end > 0 {
			return i, end, true
		}
		if end := a.email(i); end > 0 {
			return i, end, true
		}
		if end := a.www(i); end > 0 {
			return i, end, true
		}
		if end, more := a.host(i); end > 0 {
			return i, end, more
		}
	}
	return 0, 0, false
}

// has reports whether lower is at i, in any case.
func (a *addressScan) has(i int, lower string) bool {
	if len(a.v)-i < len(lower) {
		return false
	}
	for k := range len(lower) {
		if r := a.v[i+k]; r != rune(lower[k]) && (!is(r, asciiLetter) || r|0x20 != rune(lower[k])) {
			return false
		}
	}
	return true
}

// url returns the end of a URL with a scheme that begins at i, or 0.
func (a *addressScan) url(i int) int {
	if i > 0 && is(a.v[i-1], asciiLetter|asciiDigit) {
		return 0
	}
	for _, scheme := range [...]string{"http://", "https://", "ftp://"} {
		if a.has(i, scheme) {
			start := i + len(scheme)
			if end := a.urlEnd(start, false); end > start {
				return a.trim(i, end)
			}
		}
	}
	return 0
}

// email finds an address whose part before the @ begins at i. That part reaches to the end of a run, so one test is
// enough for all of the run.
func (a *addressScan) email(i int) int {
	if i < a.noEmail || a.flags[i]&asciiLocal == 0 {
		return 0
	}
	end := i
	for end < len(a.v) && a.flags[end]&asciiLocal != 0 {
		end++
	}
	// findHosts has found all hosts. One of them must begin directly after the @.
	if end < len(a.v) && a.v[end] == '@' {
		byStart := func(h span, start int32) int { return int(h.start - start) }
		if k, ok := slices.BinarySearchFunc(a.hosts, int32(end+1), byStart); ok {
			return int(a.hosts[k].end)
		}
	}
	// No host follows the run. Without noEmail, each character of the run would be followed to the run's end.
	a.noEmail = end
	return 0
}

// www returns the end of a link without a scheme, such as www.example.anything, that begins at i, or 0. Its top-level
// domain need not exist.
func (a *addressScan) www(i int) int {
	if i > 0 && (a.v[i-1] == '.' || a.flags[i-1]&asciiLabel != 0) || !a.has(i, "www.") ||
		i+4 == len(a.v) || a.flags[i+4]&asciiLabel == 0 {
		return 0
	}
	return a.trim(i, a.urlEnd(i+4, false))
}

// host finds a host at i, and whether it is the beginning of a link.
func (a *addressScan) host(i int) (end int, more bool) {
	// next has dropped the hosts before i.
	if len(a.hosts) == 0 || int(a.hosts[0].start) != i {
		return 0, false
	}
	end = int(a.hosts[0].end)
	switch after := a.v[end:]; {
	case len(after) > 0 && after[0] == '/',
		len(after) > 1 && (after[0] == '?' || after[0] == '#') && a.flags[end+1]&asciiLabel != 0:
		return a.trim(i, a.urlEnd(end, true)), true
	case len(after) > 1 && after[0] == ':' && is(after[1], asciiDigit):
		return a.trim(i, a.urlEnd(end, false)), true
	}
	return end, false
}

// urlEnd returns the end of the URL characters that begin at i, which is after the host or not.
func (a *addressScan) urlEnd(i int, behindHost bool) int {
	// The characters that are allowed change at the first / ? or #.
	for ; i < len(a.v); i++ {
		if !behindHost && (a.v[i] == '/' || a.v[i] == '?' || a.v[i] == '#') {
			behindHost = true
		}
		if behindHost && a.flags[i]&asciiURLAfter == 0 || !behindHost && a.flags[i]&asciiURLHost == 0 {
			break
		}
	}
	return i
}

// trim leaves out punctuation at the end of a link that belongs to the sentence around it.
func (a *addressScan) trim(start, end int) int {
	// The closing parenthesis after a link in parentheses is left out, but a URL may contain pairs of them.
	var round, square int // closing brackets less opening ones
	for _, r := range a.v[start:end] {
		switch r {
		case '(':
			round--
		case ')':
			round++
		case '[':
			square--
		case ']':
			square++
		}
	}
	for ; end > start; end-- {
		switch a.v[end-1] {
		case '.', ',', ';', ':', '!', '?', '\'':
			continue
		case ')':
			if round > 0 {
				round--
				continue
			}
		case ']':
			if square > 0 {
				square--
				continue
			}
		}
		break
	}
	return end
}

// isHost reports whether text as a whole is a host.
func isHost(text string) bool {
	var s scratch
	v := []rune(text)
	s.classify(v)
	for i, r := range v {
		if r == '.' && i+1 < len(v) && v[i+1] == '.' || r != '.' && s.flags[i]&asciiLabel == 0 {
			return false
		}
	}
	start, end := s.hostOf(v, 0, len(v))
	return start == 0 && end == len(v) && end > 0
}
