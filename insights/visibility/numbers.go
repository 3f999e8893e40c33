package visibility

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// A Decimal is a number rounded to four decimals, in ten-thousandths.
type Decimal int64

const decimals = 10_000

// String returns the number without zeros at its end and without an exponent.
func (d Decimal) String() string { return string(d.Append(nil)) }

// Append appends the number as String returns it.
func (d Decimal) Append(b []byte) []byte {
	if d < 0 {
		b, d = append(b, '-'), -d
	}
	b = strconv.AppendInt(b, int64(d/decimals), 10)
	if rest := d % decimals; rest > 0 {
		b = append(b, '.')
		// unit is the place of the next digit: tenths first.
		for unit := Decimal(decimals / 10); rest > 0; unit /= 10 {
			b = append(b, byte('0'+rest/unit))
			rest %= unit
		}
	}
	return b
}

// MarshalJSON writes the number as String does.
func (d Decimal) MarshalJSON() ([]byte, error) { return d.Append(nil), nil }

// Ratio rounds a / b, half away from zero. b is positive.
func Ratio(a, b int64) Decimal {
	if a < 0 {
		return -Ratio(-a, b)
	}
	// The quotient is (2·a·10,000 + b) / 2b in 128 bits, so the half is added before the division truncates.
	hi, lo := bits.Mul64(uint64(a), 2*decimals)
	lo, carry := bits.Add64(lo, uint64(b), 0)
	quotient, _ := bits.Div64(hi+carry, lo, 2*uint64(b))
	return Decimal(quotient)
}

// round rounds a number, half away from zero.
func round(x float64) Decimal { return Decimal(math.Round(x * decimals)) }

// A Share is count / of. Shares of several groups are pooled by adding both.
type Share struct {
	Value     *Decimal // nil: of is 0, or Reason says why
	Count, Of int64
	Reason    string // why there is no value; empty if there is one
}

// newShare returns count / of, or no value for the reason if of is 0.
func newShare(count, of int64, reason string) Share {
	s := Share{Count: count, Of: of}
	if of == 0 {
		s.Reason = reason
		return s
	}
	s.Value = new(Ratio(count, of))
	return s
}

// A Rate is a share of answers with its 95 % interval.
type Rate struct {
	Share
	Low, High, Effective *Decimal // nil with the value
	LowSample            bool     // the interval is wider than maxWidth, or there is none

	low, high, effective float64 // unrounded
}

// z is the quantile of the normal distribution for 95 %.
const z = 1.959963984540054

// maxWidth is the width of an interval above which a rate is marked as a low sample.
const maxWidth = 0.30

// newRate returns the rate over questions: for each question, how many of its answers count, and of how many.
func newRate(questions []split, reason string) Rate {
	var count, of int64
	for _, q := range questions {
		count, of = count+int64(q.count), of+int64(q.of)
	}
	r := Rate{Share: newShare(count, of, reason), LowSample: true}
	if of == 0 {
		return r
	}
	size, rounded := effective(questions, count, of)
	r.effective = size
	r.low, r.high = wilson(count, of, size, z)
	r.Low, r.High, r.Effective = new(round(r.low)), new(round(r.high)), &rounded
	r.LowSample = r.high-r.low > maxWidth
	return r
}

// A split is what a rate counts of one question's answers.
type split struct{ count, of int32 }

// wilson returns Wilson's interval of count / of with the effective sample size n (Wilson, Journal of the American
// Statistical Association 22, 1927).
func wilson(count, of int64, n, z float64) (low, high float64) {
	p := float64(count) / float64(of)
	center, margin := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	low, high = (center-margin)/(1+z*z/n), (center+margin)/(1+z*z/n)
	// Rounding errors must not leave a limit just inside of 0 or 1.
	if count == 0 {
		low = 0
	}
	if count == of {
		high = 1
	}
	return low, high
}

// effective returns the effective sample size of count / of, exact and rounded: the number of independent answers that
// would be as informative as these, several of which answer the same question. It is the variance of one independent
// answer over the variance of the rate between questions, the usual estimate for clusters of different sizes (Cochran,
// Sampling Techniques, 3rd edition, section 9A).
//
// With k questions, n = of, x = count and S = Σ (n·xᵢ − x·nᵢ)², p(1−p)/V is x·(n−x)·n²·(k−1) / (k·S), which is computed
// exactly.
func effective(questions []split, count, of int64) (float64, Decimal) {
	k := int64(0)
	var hi, lo uint64 // S
	for _, q := range questions {
		if q.of == 0 {
			continue
		}
		k++
		d := of*int64(q.count) - count*int64(q.of)
		if d < 0 {
			d = -d
		}
		// S is summed in 128 bits.
		h, l := bits.Mul64(uint64(d), uint64(d))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	// whole returns the number of answers, which is the maximum.
	whole := func() (float64, Decimal) { return float64(of), Decimal(of * decimals) }
	if k <= 1 || hi == 0 && lo == 0 || count == 0 || count == of {
		return whole()
	}
	// The product of the factors may need more than 64 bits.
	size := new(big.Int).SetInt64(count)
	for _, factor := range []int64{of - count, of, of, k - 1} {
		size.Mul(size, big.NewInt(factor))
	}
	s := new(big.Int).SetUint64(hi)
	s.Or(s.Lsh(s, 64), new(big.Int).SetUint64(lo)).Mul(s, big.NewInt(k))
	e := new(big.Rat).SetFrac(size, s)
	if e.Cmp(new(big.Rat).SetInt64(of)) >= 0 {
		return whole()
	}
	exact, _ := e.Float64()
	// Half away from zero: the numerator and the denominator are positive.
	n := new(big.Int).Mul(e.Num(), big.NewInt(2*decimals))
	n.Add(n, e.Denom()).Quo(n, new(big.Int).Lsh(e.Denom(), 1))
	return exact, Decimal(n.Int64())
}

// A Difference is the difference of two rates with its 95 % interval.
type Difference struct{ Value, Low, High Decimal }

// The verdicts of a comparison.
const (
	Up            = "up"
	Down          = "down"
	NoClearChange = "no_clear_change"
	NotComparable = "not_comparable"
)

// difference compares two rates that have values (Newcombe, Statistics in Medicine 17, 1998, method 10).
func difference(current, baseline *Rate) (Difference, string) {
	p1, p2 := float64(current.Count)/float64(current.Of), float64(baseline.Count)/float64(baseline.Of)
	// The verdict is by the unrounded limits.
	low, high := newcombe(p1, p2, current.low, current.high, baseline.low, baseline.high)
	verdict := NoClearChange
	switch {
	case low > 0:
		verdict = Up
	case high < 0:
		verdict = Down
	}
	value := Ratio(current.Count*baseline.Of-baseline.Count*current.Of, current.Of*baseline.Of)
	return Difference{value, round(low), round(high)}, verdict
}

// newcombe returns the interval of p1 - p2 from the intervals of both.
func newcombe(p1, p2, low1, high1, low2, high2 float64) (low, high float64) {
	d := p1 - p2
	return d - math.Hypot(p1-low1, high2-p2), d + math.Hypot(high1-p1, p2-low2)
}

// Beyond reports whether the interval of the difference with another quantile of the normal distribution lies wholly on
// the side of 0 of the verdict, which must be Up or Down.
func (c *RateChange) Beyond(z float64) bool {
	// The interval of each rate is computed again, from the effective size that the rate has kept.
	bounds := func(r *Rate) (p, low, high float64) {
		low, high = wilson(r.Count, r.Of, r.effective, z)
		return float64(r.Count) / float64(r.Of), low, high
	}
	p1, low1, high1 := bounds(&c.Current)
	p2, low2, high2 := bounds(&c.Baseline)
	low, high := newcombe(p1, p2, low1, high1, low2, high2)
	return c.Verdict == Up && low > 0 || c.Verdict == Down && high < 0
}
