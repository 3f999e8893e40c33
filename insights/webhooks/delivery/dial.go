package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// errBlocked reports that a host has no address to which a connection is allowed.
var errBlocked = errors.New("the address is not public")

// A restrictedDialer opens connections to allowed addresses only. The address is checked after resolution, immediately
// before the connection is opened: a name that resolves to another address later is checked again.
type restrictedDialer struct {
	allowPrivate bool
	deny         []netip.Prefix
	resolver     *net.Resolver
	timeout      time.Duration // from resolution to the end of the TLS handshake
}

func (r *restrictedDialer) allows(address netip.Addr) bool {
	if anyContains(r.deny, address) || anyContains(r.deny, embedded(address)) {
		return false
	}
	return r.allowPrivate || isPublic(address)
}

// DialContext opens a connection. Of several addresses of the host, those that are not allowed are left out.
func (r *restrictedDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var tried atomic.Bool // whether an allowed address was tried; addresses are tried concurrently
	dialer := net.Dialer{Timeout: r.timeout, Resolver: r.resolver}
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil || !r.allows(target.Addr()) {
			return errBlocked
		}
		tried.Store(true)
		return nil
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if errors.Is(err, errBlocked) && tried.Load() { // err comes from the first address
		return nil, errors.New("no allowed address of the host accepted a connection")
	}
	return conn, err
}

// DialTLSContext opens a connection and completes the TLS handshake, both within the timeout. The transport lets a dial
// go on when the request that began it has ended, so that the dial needs a timeout.
func (r *restrictedDialer) DialTLSContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := r.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host})
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, &tlsError{err}
	}
	return secured, nil
}

// tlsError is any error of a TLS handshake.
type tlsError struct{ err error }

func (e *tlsError) Error() string { return "TLS handshake: " + e.err.Error() }
func (e *tlsError) Unwrap() error { return e.err }
