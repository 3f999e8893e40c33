package match

import (
	"math"
	"unicode/utf8"
)

// Parameters of Punycode [RFC 3492, 5].
const (
	base        = 36
	tMin        = 1
	tMax        = 26
	skew        = 38
	damp        = 700
	initialBias = 72
	initialN    = 128
)

// punycode encodes a label [RFC 3492, 6.3]. It takes quadratic time, so callers bound the length.
func punycode(label string) (string, bool) {
	runes := []rune(label)
	var out []byte
	for _, r := range runes {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	if basic > 0 {
		out = append(out, '-')
	}
	// n, delta and bias have the names of the RFC: n is the code point to insert next, and delta the number of states
	// of the decoder since the last insertion. done is the number of code points that are encoded.
	n, delta, bias := rune(initialN), 0, initialBias
	for done := basic; done < len(runes); {
		// next is the smallest code point that is not encoded yet.
		next := rune(math.MaxInt32)
		for _, r := range runes {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		if delta > math.MaxInt32 {
			return "", false
		}
		n = next
		for _, r := range runes {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			// delta is written as an integer of variable length, the lowest digit first.
			q := delta
			for k := base; ; k += base {
				t := min(max(k-bias, tMin), tMax)
				if q < t {
					break
				}
				out = append(out, punycodeDigit(t+(q-t)%(base-t)))
				q = (q - t) / (base - t)
			}
			out = append(out, punycodeDigit(q))
			bias = adaptBias(delta, done+1, done == basic)
			delta = 0
			done++
		}
		delta++
		n++
	}
	return string(out), true
}

// punycodeDigit returns the digit for n in base 36: a to z, then 0 to 9.
func punycodeDigit(n int) byte { return "abcdefghijklmnopqrstuvwxyz0123456789"[n] }

// adaptBias returns the bias for the next delta [RFC 3492, 6.1].
func adaptBias(delta, points int, first bool) int {
	if first {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (base-tMin)*tMax/2; k += base {
		delta /= base - tMin
	}
	return k + (base-tMin+1)*delta/(delta+skew)
}
