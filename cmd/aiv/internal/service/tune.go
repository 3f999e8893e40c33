package service

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// Garbage collection trades memory for time: live memory is a few MiB, and requests allocate hundreds of MiB a second.
// The bodies of settlements are much larger than requests of customers: with servePercent, collection takes a quarter
// of the processor time of aiv dispatch.
const (
	servePercent    = 120
	dispatchPercent = 400
)

// memoryLimit bounds that trade: garbage is collected more often as memory approaches it. Live memory is bounded below
// it under any load.
const memoryLimit = 192 << 20

// TuneServe sets the limits of the Go runtime for aiv serve, except those that environment variables set. A process
// calls it once.
//
// Each round trip wakes a database on this machine, and all requests wait for it. The database answers sooner if Go
// leaves it a processor.
func TuneServe(pool *pgxpool.Pool) {
	limitMemory(servePercent)
	if os.Getenv("GOMAXPROCS") == "" && store.IsLocal(pool) {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)-1))
	}
}

// TuneDispatch is TuneServe for aiv dispatch. It uses all processors: a transaction whose results have arrived would
// otherwise wait while the body of another request is parsed, which takes a millisecond.
func TuneDispatch() { limitMemory(dispatchPercent) }

func limitMemory(gcPercent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
