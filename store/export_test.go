package store

import (
	"context"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
)

// What the tests, which are outside the package because storetest imports it,
// need of its inside.

var InstallCommand = installCommand

const SupervisorEnv = supervisorEnv

func MigrateFrom(ctx context.Context, pool *pgxpool.Pool, files fs.FS) ([]Migration, error) {
	return migrate(ctx, pool, files)
}

// WithServers makes a configuration find no servers but these: folder to major.
func WithServers(config PrivateConfig, servers map[string]int) PrivateConfig {
	config.find = func(major int) (binaries, error) {
		var dirs []string
		for dir := range servers {
			dirs = append(dirs, dir)
		}
		return choose(major, dirs, func(dir string) int { return servers[dir] })
	}
	return config
}
