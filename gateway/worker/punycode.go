package worker

import (
	"math"
	"strings"
	"unicode/utf8"
)

// maxLabel is the greatest length of a label [RFC 1035, 2.3.4].
const maxLabel = 63

// toASCII converts the labels of a lower-case domain name that are not ASCII to A-labels [RFC 5891]: xn-- and their
// Punycode. It reports false for a name with characters that no domain name can have, and for labels that would become
// too long.
func toASCII(name string) (string, bool) {
	ascii := true
	for i := range len(name) {
		ascii = ascii && name[i] < utf8.RuneSelf
		if name[i] <= ' ' || name[i] == 0x7f || strings.IndexByte(`"#%/<>?@\^`+"`{|}", name[i]) >= 0 {
			return "", false
		}
	}
	if ascii {
		return name, true
	}
	labels := strings.Split(name, ".")
	for i, label := range labels {
		if strings.ContainsFunc(label, func(r rune) bool { return r >= utf8.RuneSelf }) {
			if utf8.RuneCountInString(label) > maxLabel { // encoding takes quadratic time
				return "", false
			}
			encoded, ok := punycode(label)
			if !ok || len("xn--"+encoded) > maxLabel {
				return "", false
			}
			labels[i] = "xn--" + encoded
		}
	}
	return strings.Join(labels, "."), true
}

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

// punycode encodes a label [RFC 3492, 6.3].
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
	n, delta, bias := rune(initialN), 0, initialBias
	for done := basic; done < len(runes); {
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
			q := delta
			for k := base; ; k += base {
				t := min(max(k-bias, tMin), tMax)
				if q < t {
					break
				}
				out = append(out, digit(t+(q-t)%(base-t)))
				q = (q - t) / (base - t)
			}
			out = append(out, digit(q))
			bias = adapt(delta, done+1, done == basic)
			delta = 0
			done++
		}
		delta++
		n++
	}
	return string(out), true
}

func digit(n int) byte { return "abcdefghijklmnopqrstuvwxyz0123456789"[n] }

func adapt(delta, points int, first bool) int {
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
