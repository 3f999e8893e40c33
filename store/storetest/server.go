package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"aiv/store"
	"aiv/store/private"
)

// Each test process has one server and one template database, created when first used. They are package-level variables
// because all tests of a process share them.
var (
	ready    atomic.Bool // Main runs the tests
	running  atomic.Pointer[private.Server]
	server   = sync.OnceValues(startServer)
	template = sync.OnceValues(makeTemplate)
)

const templateName = "migrated"

func startServer() (adminURL string, err error) {
	if !ready.Load() {
		return "", errors.New("no TestMain of this package calls storetest.Main")
	}
	dir, err := MkdirTemp("aiv-test-")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := private.Start(ctx, private.Config{
		Dir:       dir,
		Ephemeral: true,
		Settings:  map[string]string{"shared_buffers": "64MB", "max_connections": "200"},
	})
	if err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	running.Store(p)
	return p.URL(), nil
}

func stopServer() {
	p := running.Load()
	if p == nil {
		return
	}
	if err := p.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// makeTemplate creates the migrated database that tests copy.
func makeTemplate() (adminURL string, err error) {
	admin, err := server()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := exec(ctx, admin, "CREATE DATABASE "+templateName+" TEMPLATE template0"); err != nil {
		return "", fmt.Errorf("create the template database: %w", err)
	}
	pool, err := store.Open(ctx, named(admin, templateName), 1)
	if err != nil {
		return "", err
	}
	// PostgreSQL copies only a database without connections.
	defer pool.Close()
	if _, err := store.Migrate(ctx, pool); err != nil {
		return "", fmt.Errorf("migrate the template database: %w", err)
	}
	return admin, nil
}
