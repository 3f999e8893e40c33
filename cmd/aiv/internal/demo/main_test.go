package demo

import (
	"testing"

	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var must, equal = storetest.Must, storetest.Equal
