package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"aiv/gateway/telemetry"
)

// ListenerConfig bounds the connections of a Listener.
type ListenerConfig struct {
	Max           int // in total
	MaxPerAddress int // of one IPv4 address or one IPv6 /64 network
	Log           *slog.Logger

	// Grown is called when more connections are open than ever before, once for every GrowthStep of them. It may be nil.
	Grown func()
}

// GrowthStep is the number of connections after which Grown is called again.
const GrowthStep = 512

// A Listener closes connections beyond its bounds at once, so that clients that connect and send nothing can exhaust
// neither the descriptors that the database and the admin listener need, nor memory, nor, from one address, the
// connections of other clients. Connections without an IP address, of Unix sockets, count in the total only.
type Listener struct {
	net.Listener
	cfg ListenerConfig

	mu        sync.Mutex
	open      int
	grown     int // connections for which Grown was called
	byAddress map[netip.Prefix]int
	rejected  [2]uint64 // beyond Max, beyond MaxPerAddress
	failed    uint64    // accept errors
	logged    time.Time // when warn last logged a line
}

// NewListener returns l with bounds.
func NewListener(l net.Listener, cfg ListenerConfig) *Listener {
	return &Listener{Listener: l, cfg: cfg, byAddress: make(map[netip.Prefix]int)}
}

// Accept returns the next connection within the bounds.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			// After an error such as a lack of descriptors, the server calls Accept again. net.ErrClosed is no failure:
			// the server is shutting down.
			if !errors.Is(err, net.ErrClosed) {
				l.mu.Lock()
				l.failed++
				l.warn("accepting a connection failed", "error", err)
				l.mu.Unlock()
			}
			return nil, err
		}
		address := addressOf(c)
		if !l.acquire(address) {
			c.Close()
			continue
		}
		return &limitedConn{Conn: c, l: l, address: address}, nil
	}
}

// acquire counts a new connection, or counts its rejection and reports false. address is not valid for a Unix socket.
func (l *Listener) acquire(address netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.cfg.Max {
		l.rejected[0]++
		l.warn("too many connections; rejecting new ones", "connections", l.open)
		return false
	}
	if address.IsValid() {
		if l.byAddress[address] >= l.cfg.MaxPerAddress {
			l.rejected[1]++
			l.warn("too many connections of one address; rejecting its new ones", "address", address.String(), "connections", l.byAddress[address])
			return false
		}
		l.byAddress[address]++
	}
	// With a step of 512, the first call is for connection 1 and the next for connection 513.
	if l.open++; l.open > l.grown && l.cfg.Grown != nil {
		l.grown += GrowthStep
		l.cfg.Grown()
	}
	return true
}

// release reverses acquire when a connection is closed.
func (l *Listener) release(address netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if address.IsValid() {
		if l.byAddress[address]--; l.byAddress[address] == 0 {
			delete(l.byAddress, address)
		}
	}
}

// warn logs at most one line in 10 s, because a client can cause any number of them. l.mu is locked.
func (l *Listener) warn(message string, attrs ...any) {
	if now := time.Now(); now.Sub(l.logged) >= 10*time.Second {
		l.logged = now
		l.cfg.Log.Warn(message, attrs...)
	}
}

// WriteMetrics writes the listener's metrics.
func (l *Listener) WriteMetrics(_ context.Context, e *telemetry.Exposition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Gauge("aiv_connections", "Open connections of the public listener.", float64(l.open))
	e.Gauge("aiv_connections_max", "Connections that the public listener accepts (-max-connections).", float64(l.cfg.Max))
	e.Family("aiv_connections_rejected_total", "counter", "Connections closed because there were too many, in total or of one address.")
	e.Sample(float64(l.rejected[0]), "bound", "total")
	e.Sample(float64(l.rejected[1]), "bound", "address")
	e.Counter("aiv_accept_errors_total", "Errors of accepting a connection.", float64(l.failed))
}

// limitedConn releases its share of the listener when it is closed.
type limitedConn struct {
	net.Conn
	l       *Listener
	address netip.Prefix
	closed  sync.Once
}

// Close may be called several times; only the first call releases the share.
func (c *limitedConn) Close() error {
	c.closed.Do(func() { c.l.release(c.address) })
	return c.Conn.Close()
}

// CloseWrite ends the sending side. net/http does that so that a client can still read a response to a body that was
// not read to its end.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// addressOf returns the network whose connections count as one client's, or the zero Prefix.
func addressOf(c net.Conn) netip.Prefix {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	// A listener of both families reports IPv4 addresses as IPv4-mapped IPv6 addresses.
	address := tcp.AddrPort().Addr().Unmap()
	bits := 32
	if address.Is6() {
		bits = 64
	}
	prefix, _ := address.Prefix(bits)
	return prefix
}
