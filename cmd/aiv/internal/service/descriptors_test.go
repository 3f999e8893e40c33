package service

import (
	"runtime/debug"
	"testing"
)

// TestServiceFitsItsDescriptors: what a service opens at most fits into its descriptors, unless these are too few for anything.
func TestServiceFitsItsDescriptors(t *testing.T) {
	for _, test := range []struct{ descriptors, deliveries, serve, dispatch int }{
		{128, 21, 56, 29},
		{1024, 170, 952, 701},
		{65_536, maxDeliveries, maxClients, maxClients},
		{1 << 30, maxDeliveries, maxClients, maxClients},
		{64, 16, 16, 16},
	} {
		deliveries, outgoing := deliveriesWithin(test.descriptors)
		serve, dispatch := defaultConnections(test.descriptors, 24), defaultConnections(test.descriptors, 20+outgoing)
		if deliveries != test.deliveries || serve != test.serve || dispatch != test.dispatch {
			t.Errorf("%d descriptors: got %d deliveries, %d and %d connections of clients, want %d, %d, %d", test.descriptors,
				deliveries, serve, dispatch, test.deliveries, test.serve, test.dispatch)
		}
		if all := dispatch + outgoing + 20 + reservedDescriptors; all > test.descriptors && test.descriptors > 64 {
			t.Errorf("%d descriptors: aiv dispatch may take %d", test.descriptors, all)
		}
	}
}

// TestAllowMemory: the limit of memory grows with connections, unless an environment variable sets it.
func TestAllowMemory(t *testing.T) {
	const before = 1 << 40
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(before))
	want := func(limit int64) {
		t.Helper()
		if got := debug.SetMemoryLimit(-1); got != limit {
			t.Errorf("the limit grew by %d, want %d", got-before, limit-before)
		}
	}
	t.Setenv("GOMEMLIMIT", "1TiB")
	allowMemory(1000, false)
	want(before)
	t.Setenv("GOMEMLIMIT", "")
	allowMemory(1000, false)
	allowMemory(1, true)
	want(before + 1000*plainMemory + tlsMemory)
}
