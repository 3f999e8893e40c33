package match

import "unicode/utf8"

// leftBound reports whether an occurrence may begin at chars[i] (M7).
func leftBound(chars []char, i int) bool {
	if i == 0 {
		return true
	}
	// Before a free letter an occurrence may always begin: its script does not separate words.
	switch c := chars[i].class(); c {
	case word, katakana, hangul:
		return chars[i-1].class() != c
	case other:
		return chars[i-1].r != chars[i].r
	}
	return true
}

// rightBound reports whether an occurrence may end before chars[i].
func rightBound(chars []char, i int) bool {
	if i == len(chars) {
		return true
	}
	// The mark belongs to the last character of the occurrence, which would be another letter with it.
	if chars[i].isMark() {
		return false
	}
	switch c := chars[i-1].class(); c {
	case word, katakana:
		return chars[i].class() != c
	case hangul:
		return chars[i].class() != hangul || beginsWithParticle(chars[i:])
	case other:
		return chars[i].r != chars[i-1].r
	}
	return true
}

// longestParticle is a bound of the characters of a particle.
const longestParticle = 4

// beginsWithParticle reports whether all the Hangul that chars begins with is one particle, such as 에서는.
func beginsWithParticle(chars []char) bool {
	// Three bytes are enough for a Hangul character in UTF-8. With the array, append allocates nothing.
	var particle [3 * (longestParticle + 1)]byte
	key := particle[:0]
	for i, c := range chars {
		if c.class() != hangul {
			break
		}
		if i == longestParticle {
			return false
		}
		key = utf8.AppendRune(key, c.r)
	}
	return particles[string(key)]
}
