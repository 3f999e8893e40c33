package match

import (
	"errors"
	"strings"
	"unicode"
)

// NameKey checks a name, an alias or an excluded phrase (M8), and returns its key: names with one key are equal,
// and two active brands may not have equal names or aliases. The text of the error
// is for customers.
func NameKey(name string, matchCase bool) (key string, err error) {
	p := newPattern(name)
	wordCharacters, letterOrDigit := 0, false
	for _, c := range p.chars {
		if !c.isHost() && isWordCharacter(c.r) {
			wordCharacters++
			letterOrDigit = letterOrDigit || isLetterOrDigit(c.r)
		}
	}
	switch {
	case !letterOrDigit:
		return "", errors.New("must contain a letter or a digit")
	case wordCharacters < 2 && !matchCase:
		return "", errors.New("must contain two letters or digits, unless match_case is true")
	}
	return p.key(), nil
}

// Variant returns the name without the legal forms at its end, such as "Halden" of "Halden & Co.", or "" if no
// variant is derived from it (M8). A variant that equals a name or alias of an active brand is not used: see
// [Matcher.Names].
func Variant(name string) string {
	words := strings.FieldsFunc(name, isSpace)
	removed := false
	// Legal forms may follow one another, as in "Halden GmbH & Co. KG": after each, connectors and commas are
	// removed.
	for len(words) > 0 && isLegalForm(words[len(words)-1]) {
		removed = true
		words = words[:len(words)-1]
		for len(words) > 0 && connectors[NormalForm(words[len(words)-1])] {
			words = words[:len(words)-1]
		}
		for len(words) > 0 {
			last := &words[len(words)-1]
			if *last = strings.TrimRight(*last, ","); *last != "" {
				break
			}
			words = words[:len(words)-1]
		}
	}
	if !removed || len(words) == 0 || len(words) == 1 && countLetters(words[0]) < 5 {
		return ""
	}
	return strings.Join(words, " ")
}

// connectors may stand before a legal form, as in "& Co.".
var connectors = wordSet("& and und et y e")

// isLegalForm reports whether a word of a name is a legal form. SpA is a legal form only in this spelling and in
// capitals, because a spa is not.
func isLegalForm(word string) bool {
	word = strings.Map(func(r rune) rune {
		if r == '.' || r == ',' || isIgnorable(r) {
			return -1
		}
		return r
	}, word)
	return word == "SpA" || word == "SPA" || legalForms[NormalForm(word)]
}

func countLetters(word string) int {
	n := 0
	for _, r := range word {
		if isLetter(r) {
			n++
		}
	}
	return n
}

// cleanName returns a name as its pattern is made of it: trimmed, without ignorable characters.
func cleanName(name string) []rune {
	name = strings.Map(func(r rune) rune {
		if isIgnorable(r) {
			return -1
		}
		return r
	}, name)
	return []rune(strings.TrimFunc(name, isSpace))
}

// isHostShaped reports whether a clean name as a whole is a host, whatever the case of its last label is.
func isHostShaped(name []rune) bool {
	return isHost(strings.Map(unicode.ToLower, string(name)))
}
