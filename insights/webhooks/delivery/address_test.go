package delivery

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aiv/insights/webhooks"
)

// TestSpecialPurposeBlocks: no address of a block of IANA's special-purpose registries, or of multicast, is public: not
// the first, not the last, and not in the middle.
func TestSpecialPurposeBlocks(t *testing.T) {
	t.Parallel()
	for _, block := range prefixes(
		// IPv4 special-purpose registry.
		"0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24",
		"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32",
		"224.0.0.0/4", // multicast
		// IPv6 special-purpose registry, without 64:ff9b::/96: TestPrivateAddressesAreDenied has addresses with an IPv4 address in it.
		"::1/128", "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128",
		"2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28",
		"2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10",
		// IPv4-compatible, site-local, multicast, unallocated.
		"::/96", "fec0::/10", "ff00::/8", "4000::/3", "8000::/1",
	) {
		for _, address := range []netip.Addr{block.Addr(), middle(block), last(block)} {
			for _, form := range forms(address) {
				if isPublic(form) {
					t.Errorf("%s of %s is public", form, block)
				}
			}
		}
	}
}

// forms returns an address and the IPv6 addresses that contain it.
func forms(address netip.Addr) []netip.Addr {
	all := []netip.Addr{address, address.WithZone("eth0")}
	if !address.Is4() {
		return all
	}
	a := address.As4()
	sixToFour, teredo, translated, local := [16]byte{0x20, 0x02}, [16]byte{0x20, 0x01}, nat64.Addr().As16(), [16]byte{0, 0x64, 0xff, 0x9b, 0, 1}
	copy(sixToFour[2:], a[:])
	copy(translated[12:], a[:])
	copy(local[12:], a[:])
	for i, b := range a {
		teredo[12+i] = ^b
	}
	return append(all, netip.AddrFrom16(address.As16()), netip.AddrFrom16(sixToFour), netip.AddrFrom16(teredo),
		netip.AddrFrom16(translated), netip.AddrFrom16(local))
}

func last(block netip.Prefix) netip.Addr {
	bytes := block.Addr().AsSlice()
	for bit := block.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

func middle(block netip.Prefix) netip.Addr {
	bytes := block.Addr().AsSlice()
	if bit := block.Bits(); bit < len(bytes)*8 {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
		"128.0.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
		"2000::", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "3ffe:ffff::1", "64:ff9b::8.8.8.8", "::ffff:8.8.8.8"} {
		if !isPublic(netip.MustParseAddr(text)) {
			t.Errorf("%s is not public", text)
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("the zero address is public")
	}
}

func TestPrivateAddressesAreDenied(t *testing.T) {
	t.Parallel()
	deny := prefixes("8.8.0.0/16", "2606:4700::/32", "64:ff9b::101:101/128")
	for _, private := range []bool{false, true} {
		g := restrictedDialer{deny: deny, allowPrivate: private}
		for _, text := range []string{"8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b::1.1.1.1", "2606:4700::1"} {
			if g.allows(netip.MustParseAddr(text)) {
				t.Errorf("%s is allowed, private addresses %v", text, private)
			}
		}
		if !g.allows(netip.MustParseAddr("8.9.0.0")) || g.allows(netip.MustParseAddr("127.0.0.1")) != private {
			t.Error("addresses beside the list")
		}
	}
}

// TestNothingIsConnectedTo: a receiver on loopback gets no connection, in any spelling of its URL.
func TestNothingIsConnectedTo(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	var connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	names := &nameServer{answers: map[string][]netip.Addr{
		"one.test.":     {netip.MustParseAddr("127.0.0.1")},
		"several.test.": {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("127.0.0.2")},
	}}
	s := newSender(&restrictedDialer{resolver: names.start(t), timeout: 5 * time.Second}, 1)
	for _, host := range []string{"127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0", "[::]", "[::1]",
		"[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::127.0.0.1]", "localhost", "LOCALHOST",
		"localhost.", "one.test", "ONE.test.", "several.test", "127。0。0。1", "①②⑦.⓪.⓪.①"} {
		for _, scheme := range []string{"http://", "https://"} {
			r := s.send(t.Context(), scheme+host+":"+port+"/", http.Header{}, nil)
			// A name that does not resolve is no connection either.
			if r.err != webhooks.ErrorBlocked && r.err != webhooks.ErrorConnection || r.err != webhooks.ErrorBlocked && strings.HasSuffix(host, ".test") {
				t.Errorf("%s%s: %+v", scheme, host, r)
			}
		}
	}
	equal(t, 0, connections.Load(), "connections")
}

// TestNameThatChanges: the address that is connected to is checked, not one that was resolved before.
func TestNameThatChanges(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, nil)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.URL, "http://"))
	names := &nameServer{answers: map[string][]netip.Addr{"name.test.": {netip.MustParseAddr("127.0.0.2")}}}
	deny := prefixes("127.0.0.2/32")
	s := newSender(&restrictedDialer{resolver: names.start(t), timeout: 5 * time.Second, allowPrivate: true, deny: deny}, 1)
	url := "http://name.test:" + port
	equal(t, webhooks.ErrorBlocked, s.send(t.Context(), url, http.Header{}, nil).err, "denied address")
	// Of several addresses, those that are allowed are tried.
	names.set("name.test.", netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1"))
	equal(t, "", s.send(t.Context(), url, http.Header{}, nil).err, "one of two addresses is allowed")
	_, closed, _ := net.SplitHostPort(strings.Trim(closedPort(t), "htp:/"))
	equal(t, webhooks.ErrorConnection, s.send(t.Context(), "http://name.test:"+closed, http.Header{}, nil).err,
		"the allowed address refuses connections")
	s.transport.CloseIdleConnections()
	names.set("name.test.", netip.MustParseAddr("127.0.0.2"))
	equal(t, webhooks.ErrorBlocked, s.send(t.Context(), url, http.Header{}, nil).err, "after the name has changed")
}
