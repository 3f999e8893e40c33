package httpserver

import "net"

// Connections returns l as Serve uses it.
func Connections(l net.Listener) net.Listener { return connections{l, true} }
