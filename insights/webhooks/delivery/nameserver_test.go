package delivery

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"testing"
)

// A nameServer answers queries for the addresses of names, on loopback.
type nameServer struct {
	mu      sync.Mutex
	answers map[string][]netip.Addr // by name with its trailing dot, in lower case
}

func (s *nameServer) set(name string, addresses ...netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[name] = addresses
}

// start returns a resolver that asks the server.
func (s *nameServer) start(t testing.TB) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	go func() {
		query := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			conn.WriteTo(s.response(query[:n]), from)
		}
	}()
	return resolverAt(conn.LocalAddr())
}

// resolverAt returns a resolver that asks the server at an address.
func resolverAt(server net.Addr) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.String())
	}}
}

// response is that to a query of one question (RFC 1035, section 4).
func (s *nameServer) response(query []byte) []byte {
	name, end := "", 12
	for query[end] != 0 {
		n := int(query[end])
		label := []byte(string(query[end+1 : end+1+n]))
		for i, c := range label {
			if 'A' <= c && c <= 'Z' {
				label[i] += 'a' - 'A'
			}
		}
		name += string(label) + "."
		end += 1 + n
	}
	question := query[12 : end+5]
	wanted := binary.BigEndian.Uint16(query[end+1:])
	s.mu.Lock()
	addresses, found := s.answers[name]
	s.mu.Unlock()
	header := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1}, make([]byte, 6)...)
	if !found {
		header[3] |= 3 // no such name
	}
	response := append(header, question...)
	for _, a := range addresses {
		kind := uint16(1)
		if a.Is6() {
			kind = 28
		}
		if kind != wanted {
			continue
		}
		header[7]++
		response[7]++
		response = append(response, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(a.BitLen()/8))
		response = append(response, a.AsSlice()...)
	}
	return response
}
