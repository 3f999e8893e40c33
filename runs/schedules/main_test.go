package schedules_test

import (
	"testing"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
