package gateway

import (
	"strings"
	"testing"

	"aiv/gateway/problem"
	"aiv/gateway/strictjson"
	"aiv/store"
)

// TestBodies: the memory for bodies is bounded, for one credential and for all, and released memory can be taken again.
func TestBodies(t *testing.T) {
	t.Parallel()
	b := memory{max: maxBodies, maxOfOne: maxBodiesOfOne}
	var ids []store.ID
	for range maxBodies / maxBodiesOfOne {
		ids = append(ids, store.NewID())
	}
	for _, id := range ids {
		for taken := 0; taken < maxBodiesOfOne; taken += maxBody {
			if !b.take(id, maxBody) {
				t.Fatalf("%d bytes were refused after %d", maxBody, taken)
			}
		}
		if b.take(id, 1) {
			t.Error("one credential exceeds its bound")
		}
	}
	late := store.NewID()
	if b.take(late, 1) {
		t.Error("the total exceeds its bound")
	}
	b.take(ids[0], -maxBodiesOfOne)
	if !b.take(late, maxBody) || !b.take(ids[0], maxBody) {
		t.Error("released memory cannot be taken")
	}
	b.take(late, -maxBody)
	b.take(ids[0], -maxBody)
	for _, id := range ids[1:] {
		b.take(id, -maxBodiesOfOne)
	}
	if b.taken != 0 || len(b.by) != 0 {
		t.Errorf("%d bytes of %d credentials remain after all were released", b.taken, len(b.by))
	}
}

// TestFaultsAreShort: the reported errors do not grow with the names in a body.
func TestFaultsAreShort(t *testing.T) {
	v, err := strictjson.Parse([]byte(`{"`+strings.Repeat("é", maxBody/4)+`": 1}`), jsonLimits)
	if err != nil {
		t.Fatal(err)
	}
	var f problem.Faults
	strictjson.NewObject(v, "#", &f)
	if len(f) != 1 || len(f[0].Pointer) > 300 {
		t.Errorf("%d faults, the first at %d bytes of pointer", len(f), len(f[0].Pointer))
	}
}
