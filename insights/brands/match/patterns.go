package match

// A pattern is what a name, alias or excluded phrase is searched by (M5). It is made once for each name, so its
// methods need not be fast.
type pattern struct {
	name       []rune    // the name, clean
	chars      []char    // its normal form
	origins    []segment // from chars to name
	hostShaped bool      // then chars is searched as it is
	dot        bool      // a dot directly before the first run
	tokens     []token
}

// A token is a part of a name that is searched as it is: chars[start:end].
type token struct {
	start, end int
	hump       bool // it continues the run of the token before
}

// newPattern reads a name as it was saved. A name without a word character has no tokens and is never found.
func newPattern(name string) *pattern {
	p := &pattern{name: cleanName(name)}
	p.chars, p.origins = normalRunes(p.name)
	p.hostShaped = isHostShaped(p.name)
	// Each run of word characters becomes tokens. What is between runs is kept in chars, as the gaps depend on it.
	for i := 0; i < len(p.chars); {
		if !isWordCharacter(p.chars[i].r) {
			i++
			continue
		}
		if len(p.tokens) == 0 {
			p.dot = i > 0 && p.chars[i-1].r == '.'
		}
		start := i
		i++
		// An & is a separate run, because it may be written as a word.
		if p.chars[start].r != '&' {
			for i < len(p.chars) && p.chars[i].r != '&' && isWordCharacter(p.chars[i].r) {
				i++
			}
		}
		p.addRun(start, i)
	}
	return p
}

// normalRunes returns the normal form of a clean name, and where its characters come from.
func normalRunes(runes []rune) (chars []char, origins []segment) {
	n := normalizer{ascii: &asciiNormal}
	for i, r := range runes {
		n.add(r, int32(i))
	}
	return n.out, n.from
}

// origin returns the index in the name of what chars[i] comes from.
func (p *pattern) origin(i int) int { return int(origin(p.origins, int32(i))) }

// addRun splits a run at its humps, as in HubDrift.
func (p *pattern) addRun(start, end int) {
	hump := false
	if !p.hostShaped {
		for i := start + 1; i < end; i++ {
			// Characters that come from the same character of the name are not separated.
			if p.origin(i) != p.origin(i-1) && p.isHump(p.origin(i)) {
				p.tokens = append(p.tokens, token{start, i, hump})
				start, hump = i, true
			}
		}
	}
	p.tokens = append(p.tokens, token{start, end, hump})
}

// isHump reports whether name[i] is a capital that follows a lower-case letter; marks that the normal form drops
// may stand between.
func (p *pattern) isHump(i int) bool {
	if !isCapital(p.name[i]) {
		return false
	}
	kept := func(i int) bool {
		for k := range p.chars {
			if p.origin(k) == i {
				return true
			}
		}
		return false
	}
	// Go back over marks of which nothing is in the normal form.
	for i--; i >= 0 && isMark(p.name[i]) && !kept(i); i-- {
	}
	return i >= 0 && isLower(p.name[i])
}

// key returns the key of equal names.
func (p *pattern) key() string {
	if p.hostShaped {
		return plain(p.chars)
	}
	key := ""
	if p.dot {
		key = "."
	}
	for _, t := range p.tokens {
		key += plain(p.chars[t.start:t.end])
	}
	return key
}

// letters returns how many letters a token has.
func (p *pattern) letters(t token) int { return countLetters(plain(p.chars[t.start:t.end])) }

// A caseRule says what the first letter of a run must be if the brand has match_case.
type caseRule uint8

const (
	anyCase caseRule = iota
	mustBeCapital
	mustNotBeCapital
)

// caseRules returns the rule for each of p.chars.
func (p *pattern) caseRules(matchCase bool) []caseRule {
	rules := make([]caseRule, len(p.chars))
	if !matchCase {
		return rules
	}
	for i, t := range p.tokens {
		if t.hump {
			continue
		}
		// The run ends with the last token that continues it by a hump.
		end := t.end
		for _, next := range p.tokens[i+1:] {
			if !next.hump {
				break
			}
			end = next.end
		}
		// Only the first letter of the run has a rule.
		for k := t.start; k < end; k++ {
			if !isLetter(p.chars[k].r) {
				continue
			}
			switch written := p.name[p.origin(k)]; {
			case isCapital(written):
				rules[k] = mustBeCapital
			case isLower(written):
				rules[k] = mustNotBeCapital
			}
			break
		}
	}
	return rules
}
