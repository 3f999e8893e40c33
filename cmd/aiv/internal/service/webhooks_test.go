package service

import "testing"

func TestNetworkOfMappedAddressesIsIPv4(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1/24": "192.0.2.0/24", "2001:db8::1/32": "2001:db8::/32", "::/0": "::/0",
		"::ffff:192.0.2.1/120": "192.0.2.0/24", "::ffff:0:0/96": "0.0.0.0/0",
	} {
		if got, err := parseNetwork(text); err != nil || got.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	if got, err := parseNetwork("192.0.2.1"); err == nil {
		t.Errorf("an address without a length is the network %v", got)
	}
}
