package service

import (
	"os"
	"runtime/debug"
)

// Garbage collection trades memory for time: live memory is a few MiB, and requests allocate hundreds of MiB a second.
// The bodies of settlements are much larger than requests of customers: at 150 %, collection takes a quarter of the
// processor time of aiv dispatch.
const (
	servePercent    = 200
	dispatchPercent = 400
)

// memoryLimit bounds that trade: garbage is collected more often as memory approaches it. Live memory is bounded below
// it under any load.
const memoryLimit = 192 << 20

// TuneServe sets the limits of the Go runtime for aiv serve, except those that environment variables set. A process
// calls it once.
func TuneServe() { limitMemory(servePercent) }

// TuneDispatch is TuneServe for aiv dispatch.
func TuneDispatch() { limitMemory(dispatchPercent) }

func limitMemory(gcPercent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}
