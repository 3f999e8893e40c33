package engines

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// CheckURL returns why an engine cannot use an address, or nil. Without TLS the network could read the key and change
// answers, so http is only for this machine, and for servers that get no key.
func CheckURL(name, address string, hasKey bool) error {
	if address == "" {
		if find(name).base == "" {
			return errors.New("is required: the base address of the server, such as http://127.0.0.1:11434/v1")
		}
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(address, "?#") || !isPort(u.Port()) {
		return errors.New("must be http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]")
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) && (name != "chat" || hasKey) {
		return errors.New("must begin with https://, except for loopback hosts and for chat without a key")
	}
	return nil
}

// isPort reports whether a connection can be made to a port; "" is that of the scheme.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
