package private_test

import (
	"testing"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) {
	helpIfAsked()
	storetest.Main(m)
}
