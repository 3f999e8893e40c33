package schema_test

import (
	"errors"
	"testing"

	"aiv/store/schema"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

func TestDistributeWithoutCitus(t *testing.T) {
	t.Parallel()
	pool := storetest.Plain(t)
	before := describeSchema(t, pool)
	if _, err := schema.Distribute(t.Context(), pool, capabilities); !errors.Is(err, schema.ErrNoCitus) {
		t.Errorf("got error %v, want ErrNoCitus", err)
	}
	if diff := cmp.Diff(before, describeSchema(t, pool)); diff != "" {
		t.Errorf("the schema has changed:\n%s", diff)
	}
}
