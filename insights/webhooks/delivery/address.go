package delivery

import (
	"net/netip"
	"slices"
)

// nat64 is the well-known prefix of translated addresses [RFC 6052]: the last 32 bits are the IPv4 address that is
// reached. A network with IPv6 only reaches public IPv4 addresses through it.
//
// [RFC 6052]: https://www.rfc-editor.org/rfc/rfc6052
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// special4 contains the blocks of the [IANA IPv4 special-purpose registry] and multicast. The few that are globally
// reachable serve DNS, relays and tunnels, never a customer's receiver, so that they are not excepted.
//
// [IANA IPv4 special-purpose registry]: https://www.iana.org/assignments/iana-ipv4-special-registry
var special4 = prefixes(
	"0.0.0.0/8",       // this network
	"10.0.0.0/8",      // private use
	"100.64.0.0/10",   // shared address space
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local
	"172.16.0.0/12",   // private use
	"192.0.0.0/24",    // IETF protocol assignments
	"192.0.2.0/24",    // documentation
	"192.31.196.0/24", // AS112
	"192.52.193.0/24", // AMT
	"192.88.99.0/24",  // 6to4 and 6a44 relays
	"192.168.0.0/16",  // private use
	"192.175.48.0/24", // AS112
	"198.18.0.0/15",   // benchmarking
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and limited broadcast
)

// global6 is the only block of IPv6 from which unicast addresses are allocated. Every block of the
// [IANA IPv6 special-purpose registry] outside it needs no entry in special6.
//
// [IANA IPv6 special-purpose registry]: https://www.iana.org/assignments/iana-ipv6-special-registry
var global6 = netip.MustParsePrefix("2000::/3")

var special6 = prefixes(
	"2001::/23",         // IETF protocol assignments: Teredo, ORCHID, benchmarking and others
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4
	"2620:4f:8000::/48", // AS112
	"3fff::/20",         // documentation
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// isPublic reports whether an address is globally reachable unicast. An address that contains an IPv4 address by
// mapping or NAT64 is public if that is; 6to4 and Teredo are obsolete, and none of their addresses is.
func isPublic(address netip.Addr) bool {
	address = embedded(address)
	switch {
	case !address.IsValid() || address.Zone() != "":
		return false
	case address.Is4():
		return !anyContains(special4, address)
	default:
		return global6.Contains(address) && !anyContains(special6, address)
	}
}

// embedded returns the IPv4 address that is reached by an IPv6 address, or else the address.
func embedded(address netip.Addr) netip.Addr {
	if nat64.Contains(address) {
		bytes := address.As16()
		return netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return address.Unmap()
}

func anyContains(blocks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(blocks, func(block netip.Prefix) bool { return block.Contains(address) })
}
