package demo

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var must = storetest.Must

// equal compares what a test got with what it wants.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
