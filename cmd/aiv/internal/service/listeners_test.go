package service

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := Listen(t.Context(), addr)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// TestListenOnFreePorts: only the listener whose default address is in use gets another port, and an address that was
// given is never replaced.
func TestListenOnFreePorts(t *testing.T) {
	// Nobody else takes the free port meanwhile, because other programs use 127.0.0.1.
	taken, free := listen(t, "127.0.0.1:0"), listen(t, fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), 1+rand.N(254), 1+rand.N(254)))
	addr := free.Addr().String()
	free.Close()
	o := Options{addr: addr, adminAddr: taken.Addr().String()}
	o.mayMove.addr, o.mayMove.adminAddr = true, true
	l, err := o.ListenOnFreePorts(t.Context())
	must(t, err)
	defer l.Close()
	if got := l.Main.Addr().String(); got != addr {
		t.Errorf("the main address moved from %s to %s", addr, got)
	}
	given := Options{addr: "127.0.0.1:0", adminAddr: taken.Addr().String()}
	if l, err := given.ListenOnFreePorts(t.Context()); err == nil {
		l.Close()
		t.Error("an address that was given and is in use was replaced")
	}
}
