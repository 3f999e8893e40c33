package service

import (
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Garbage collection trades memory for time: live memory is a few MiB, and requests allocate hundreds of MiB a second.
// The bodies of settlements are much larger than requests of customers: at 150 %, collection takes a quarter of the
// processor time of aiv dispatch.
const (
	servePercent    = 200
	dispatchPercent = 400
)

// memoryLimit bounds that trade: garbage is collected more often as memory approaches it. Live memory is bounded below
// it under any load, except for the memory of connections, by which the limit grows: garbage would be collected all the time.
const memoryLimit = 192 << 20

// Memory of an idle connection.
const (
	plainMemory = 20 << 10
	tlsMemory   = 32 << 10
)

// allowMemory raises the limit by the memory of connections.
func allowMemory(connections int, tls bool) {
	// A limit set by the operator is not changed.
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	each := plainMemory
	if tls {
		each = tlsMemory
	}
	// A negative argument only returns the limit.
	debug.SetMemoryLimit(debug.SetMemoryLimit(-1) + int64(connections*each))
}

// TuneServe sets the limits of the Go runtime for aiv serve, except those that environment variables set. A process
// calls it once.
//
// Each round trip wakes a process of PostgreSQL, and all requests of a batch wait for it. If PostgreSQL is on this
// machine, one processor is left to it: otherwise threads of Go, which look for work before they sleep, delay it.
func TuneServe(pool *pgxpool.Pool) {
	limitMemory(servePercent)
	if os.Getenv("GOMAXPROCS") == "" && store.IsLocal(pool) {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)-1))
	}
}

// TuneDispatch is TuneServe for aiv dispatch. It leaves no processor to PostgreSQL: a transaction whose results have
// arrived would then wait while the body of another request is parsed.
func TuneDispatch() { limitMemory(dispatchPercent) }

// limitMemory sets the percentage and the limit of garbage collection, unless the environment does.
func limitMemory(gcPercent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// Bounds of what takes descriptors besides the connections to the database.
const (
	maxClients          = 16_384 // connections of clients; idle ones take about 300 MB
	maxDeliveries       = 1024   // webhook requests at a time
	reservedDescriptors = 48     // for the database's connections while they are replaced, the admin listener and files
)

// maxDescriptors returns how many descriptors the process may have.
func maxDescriptors() int {
	const unlimited = 1 << 30
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return unlimited
	}
	return int(min(limit.Cur, unlimited))
}

// defaultConnections returns how many client connections fit into a number of descriptors beside those that the process
// opens itself.
func defaultConnections(descriptors, opened int) int {
	return max(16, min(maxClients, descriptors-opened-reservedDescriptors))
}

// deliveriesWithin returns how many webhook requests may be in flight at a time. It also returns how many connections
// they and the idle ones use: at most a quarter of the descriptors.
func deliveriesWithin(descriptors int) (requests, connections int) {
	// Half as many connections as requests may be idle, kept for the next deliveries.
	requests = max(16, min(maxDeliveries, descriptors/6))
	return requests, requests + requests/2
}
