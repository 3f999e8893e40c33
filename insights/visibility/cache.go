package visibility

// A cache keeps values of up to max bytes, as its caller estimates them. For a new one it drops random others: values
// that are used in turns, and do not all fit, are found some of the time.
type cache[K comparable, V any] struct {
	max, bytes int
	entries    map[K]cached[V]
}

type cached[V any] struct {
	value V
	bytes int
}

func newCache[K comparable, V any](max int) cache[K, V] {
	return cache[K, V]{max: max, entries: make(map[K]cached[V])}
}

// get returns a value, or the zero value.
func (c *cache[K, V]) get(key K) V { return c.entries[key].value }

func (c *cache[K, V]) put(key K, value V, bytes int) {
	c.remove(key)
	for other := range c.entries {
		if c.bytes+bytes <= c.max {
			break
		}
		c.remove(other)
	}
	c.entries[key] = cached[V]{value, bytes}
	c.bytes += bytes
}

func (c *cache[K, V]) remove(key K) {
	c.bytes -= c.entries[key].bytes
	delete(c.entries, key)
}

// bytesOf returns how many bytes texts have.
func bytesOf(texts []string) int {
	n := 0
	for _, text := range texts {
		n += len(text)
	}
	return n
}
