package visibility

import (
	"slices"
	"unicode/utf8"

	"aiv/insights/brands"
)

// Bounds of what a Counter keeps, in bytes, because the brands of an account take from 10 KB to several MB: half of the
// limit of the process's memory for brands, which is enough for 1,000 accounts with 20 brands, and these.
const (
	maxRunBytes = 16 << 20 // enough for 1,000 runs of 100 questions
	maxAsked    = 1 << 20  // 20 and the text of each question; what the matcher makes of it takes 20 times as many
)

// A cache keeps values of up to max bytes, as its caller estimates them. For a new one it drops random others: values
// that are used in turns, and do not all fit, are found some of the time.
type cache[K comparable, V any] struct {
	max, bytes int
	entries    map[K]cached[V]
}

// A cached is a value with the estimate of its size.
type cached[V any] struct {
	value V
	bytes int
}

func newCache[K comparable, V any](max int) cache[K, V] {
	return cache[K, V]{max: max, entries: make(map[K]cached[V])}
}

// get returns a value, or the zero value.
func (c *cache[K, V]) get(key K) V { return c.entries[key].value }

// put adds or replaces a value. A value of more than max bytes is kept alone.
func (c *cache[K, V]) put(key K, value V, bytes int) {
	c.remove(key)
	// range visits the keys of a map in an unspecified order.
	for other := range c.entries {
		if c.bytes+bytes <= c.max {
			break
		}
		c.remove(other)
	}
	c.entries[key] = cached[V]{value, bytes}
	c.bytes += bytes
}

// remove drops a value, if there is one.
func (c *cache[K, V]) remove(key K) {
	c.bytes -= c.entries[key].bytes
	delete(c.entries, key)
}

// brandBytes estimates what accountBrands take: mostly the matcher, 30 to 70 bytes for each character of a name.
func brandBytes(active []brands.Brand) int {
	// A matcher without names takes about 10 KB.
	n := 10_000
	for i := range active {
		of := &active[i]
		for _, name := range slices.Concat([]string{of.Name}, of.Aliases, of.Exclude) {
			n += 60 * utf8.RuneCountInString(name)
		}
		n += 350*len(of.Domains) + bytesOf(of.Domains)
	}
	return n
}

// runBytes estimates what a countedRun takes.
func runBytes(r *countedRun) int {
	return 200 + 32*len(r.texts) + bytesOf(r.questions) + bytesOf(r.texts)
}

// bytesOf returns how many bytes texts have.
func bytesOf(texts []string) int {
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	return n
}
