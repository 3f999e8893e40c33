package gateway

import (
	"strconv"
	"testing"

	"aiv/catalog"
)

func TestModelPages(t *testing.T) {
	var c modelPages
	first, second := &catalog.Snapshot{Revision: 1}, &catalog.Snapshot{Revision: 2}
	key, one := modelPageKey{params: "limit=1"}, &modelPage{page: page{body: []byte("{}")}}
	c.add(first, key, one)
	if c.get(first, key) != one {
		t.Error("the page is not cached")
	}
	if c.get(first, modelPageKey{params: "limit=1", plain: true}) != nil || c.get(second, key) != nil {
		t.Error("the page is returned for another form of address or another snapshot")
	}
	c.add(second, key, one)
	if c.get(first, key) != nil {
		t.Error("the pages of an earlier snapshot are kept")
	}
	large := &modelPage{page: page{body: make([]byte, maxModelPages/8)}}
	for i := range 100 {
		c.add(second, modelPageKey{params: strconv.Itoa(i)}, large)
		if c.size > maxModelPages || len(c.pages) > 8 {
			t.Fatalf("%d pages of %d bytes are kept", len(c.pages), c.size)
		}
	}
}
