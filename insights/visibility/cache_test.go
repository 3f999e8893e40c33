package visibility

import "testing"

// TestCacheIsBoundedByBytes: a cache drops as many values as a new one needs, and no more.
func TestCacheIsBoundedByBytes(t *testing.T) {
	c := newCache[int, string](10)
	for key, bytes := range []int{4, 4, 2, 3, 9} {
		c.put(key, "value", bytes)
		sum := 0
		for _, of := range c.entries {
			sum += of.bytes
		}
		if least := []int{4, 8, 10, 7, 9}[key]; c.get(key) == "" || c.bytes != sum || sum < least || sum > 10 {
			t.Errorf("%d bytes are cached, counted as %d: %v", sum, c.bytes, c.entries)
		}
	}
}
