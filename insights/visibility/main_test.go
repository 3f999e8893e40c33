package visibility

import (
	"testing"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
