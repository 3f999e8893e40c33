package service

import "testing"

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
