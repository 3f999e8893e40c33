package store

import (
	"context"
	"net"
	"time"
)

// lostAfter is how long a connection outlives the machine at its other end. All connections of a pool then end at once.
// Otherwise each of them would fail a request, which waits for the connection until its deadline.
const lostAfter = 15 * time.Second

// dial connects to a server so that the connection ends if the server's machine stops without closing it.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: lostAfter / 5, Interval: lostAfter / 5, Count: 4}, // whole seconds
		Control:         setUserTimeout,
	}
	return d.DialContext(ctx, network, address)
}
