package visibility

import (
	"testing"
)

// TestCacheIsBoundedByBytes: a cache drops as many values as a new one needs, and no more.
func TestCacheIsBoundedByBytes(t *testing.T) {
	c := newCache[int, string](10)
	for key, bytes := range []int{4, 4, 2, 3, 3} {
		c.put(key, "value", bytes)
	}
	sum := 0
	for _, of := range c.entries {
		sum += of.bytes
	}
	if c.get(4) == "" || c.bytes != sum || sum < 7 || sum > 10 {
		t.Errorf("%d bytes are cached, counted as %d: %v", sum, c.bytes, c.entries)
	}
	c.put(4, "another", 9)
	if len(c.entries) != 1 || c.get(4) != "another" || c.bytes != 9 {
		t.Errorf("%d bytes are cached: %v", c.bytes, c.entries)
	}
}
