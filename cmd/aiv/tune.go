package main

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/store"
)

// gcPercent trades some memory for time: what lives is a few MiB, what requests leave behind is hundreds a second.
const gcPercent = 150

// memoryLimit is where that trade ends: the more memory is taken, the sooner garbage is collected. What may live, under
// any load, is bounded below it.
const memoryLimit = 192 << 20

// tune sets what the Go runtime takes of the machine, but for what its own environment variables set.
func tune(pool *pgxpool.Pool) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	// A database on this machine is woken by each round trip, and all requests wait for it meanwhile: left a processor of its
	// own it answers sooner than one more could prepare requests for it.
	if os.Getenv("GOMAXPROCS") == "" && store.IsLocal(pool) {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)-1))
	}
}
