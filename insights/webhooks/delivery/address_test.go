package delivery

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"aiv/insights/webhooks"
)

// TestSpecialPurposeBlocks: no address of a block of IANA's special-purpose registries, or of multicast, is public: not
// the first, not the last, and not in the middle.
func TestSpecialPurposeBlocks(t *testing.T) {
	t.Parallel()
	for _, block := range prefixes(
		// IPv4 special-purpose registry.
		"0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32", "192.0.0.170/32",
		"192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.88.99.2/32",
		"192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"255.255.255.255/32",
		"224.0.0.0/4", // multicast
		// IPv6 special-purpose registry, without 64:ff9b::/96, whose addresses are as public as the IPv4 addresses in them.
		"::1/128", "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128",
		"2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28",
		"2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16",
		"fc00::/7", "fe80::/10",
		// IPv4-compatible, site-local, multicast, unallocated.
		"::/96", "fec0::/10", "ff00::/8", "4000::/3", "8000::/1",
	) {
		first := block.Addr().AsSlice()
		middle, last := bytes.Clone(first), bytes.Clone(first)
		for bit := block.Bits(); bit < len(last)*8; bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
			if bit == block.Bits() {
				middle = bytes.Clone(last)
			}
		}
		for _, bytes := range [][]byte{first, middle, last} {
			address, _ := netip.AddrFromSlice(bytes)
			forms := []netip.Addr{address, address.WithZone("eth0")}
			if address.Is4() { // as a mapped address and by NAT64
				forms = append(forms, netip.AddrFrom16(address.As16()), netip.MustParseAddr("64:ff9b::"+address.String()))
			}
			for _, form := range forms {
				if isPublic(form) {
					t.Errorf("%s of %s is public", form, block)
				}
			}
		}
	}
}

func TestAllowedAddresses(t *testing.T) {
	t.Parallel()
	deny := prefixes("8.8.0.0/16", "2606:4700::/32", "64:ff9b::101:101/128")
	for _, test := range []struct {
		name            string
		public, allowed bool // whether allowed without and with the list of denied addresses
		addresses       string
	}{
		{"public", true, true, "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 " +
			"172.15.255.255 172.32.0.0 192.0.1.0 192.169.0.0 198.17.255.255 198.20.0.0 223.255.255.255 2000:: " +
			"2001:200::1 2001:4860:4860::8888 3ffe:ffff::1 64:ff9b::8.9.8.8 ::ffff:8.9.8.8 8.9.0.0"},
		{"denied", true, false, "8.8.8.8 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b::1.1.1.1 2606:4700::1 2606:4700::1111"},
		{"private", false, false, "127.0.0.1"},
	} {
		for text := range strings.FieldsSeq(test.addresses) {
			address := netip.MustParseAddr(text)
			got := []bool{isPublic(address), (&restrictedDialer{deny: deny}).allows(address),
				(&restrictedDialer{deny: deny, allowPrivate: true}).allows(address)}
			equal(t, []bool{test.public, test.allowed, test.name != "denied"}, got, test.name, " ", text)
		}
	}
	equal(t, false, isPublic(netip.Addr{}), "the zero address is public")
}

// TestNothingIsConnectedTo: a receiver on loopback gets no connection, in any spelling of its URL.
func TestNothingIsConnectedTo(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(nil)
	server.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	server.Start()
	defer server.Close()
	s := newSender(&restrictedDialer{resolver: names("127.0.0.1", "10.0.0.1", "127.0.0.2"), timeout: waitTimeout}, 1)
	for host := range strings.FieldsSeq("127.0.0.1 127.0.0.1. 127.1 2130706433 0x7f000001 0177.0.0.1 0 0.0.0.0 " +
		"[::] [::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] [::127.0.0.1] localhost LOCALHOST " +
		"localhost. name.test NAME.test. 127。0。0。1 ①②⑦.⓪.⓪.①") {
		for _, scheme := range []string{"http://", "https://"} {
			got := s.send(t.Context(), scheme+host+":"+portOf(server.URL)+"/", http.Header{}, nil)
			if got.err == webhooks.ErrorConnection && strings.Trim(host, "0123456789.") == "" {
				got.err = webhooks.ErrorBlocked // numbers that are no address are not resolved
			}
			equal(t, webhooks.ErrorBlocked, got.err, scheme, host)
		}
	}
	equal(t, int32(0), connections.Load(), "connections")
}

// TestNameThatChanges: the address that is connected to is checked, not one that was resolved before. Of several
// addresses, the sender tries those that are allowed.
func TestNameThatChanges(t *testing.T) {
	t.Parallel()
	port := portOf(newReceiver(t, 204).URL)
	dialer := &restrictedDialer{timeout: waitTimeout, allowPrivate: true, deny: prefixes("127.0.0.2/32")}
	s := newSender(dialer, 1)
	for _, step := range []struct {
		name      string
		addresses []string
		port      string
		want      string
	}{
		{"denied", []string{"127.0.0.2"}, port, webhooks.ErrorBlocked},
		{"one of two is allowed", []string{"127.0.0.2", "127.0.0.1"}, port, ""},
		{"the allowed one refuses connections", []string{"127.0.0.2", "127.0.0.1"}, portOf(closedPort(t)),
			webhooks.ErrorConnection},
		{"denied after a change", []string{"127.0.0.2"}, port, webhooks.ErrorBlocked},
	} {
		dialer.resolver = names(step.addresses...)
		equal(t, step.want, s.send(t.Context(), "http://name.test:"+step.port, http.Header{}, nil).err, step.name)
		s.transport.CloseIdleConnections()
	}
}

func portOf(url string) string { return url[strings.LastIndexByte(url, ':')+1:] }

// names returns a resolver for which each name has these IPv4 addresses.
func names(addresses ...string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go respond(server, addresses)
		return client, nil
	}}
}

// respond responds to one query for the addresses of a name (RFC 1035, section 4).
func respond(conn net.Conn, addresses []string) {
	defer conn.Close()
	query := make([]byte, 1500)
	n, _ := conn.Read(query)
	query = query[2:n]                             // without its length
	end := 12 + bytes.IndexByte(query[12:], 0) + 5 // of the name, the type and the class
	response := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1}, make([]byte, 6)...)
	response = append(response, query[12:end]...)
	if query[end-3] == 1 { // type A
		for _, a := range addresses {
			response[7]++
			response = append(response, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
			response = append(response, netip.MustParseAddr(a).AsSlice()...)
		}
	}
	conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(response))), response...))
}
