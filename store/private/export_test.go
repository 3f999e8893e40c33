package private

// Exported for the tests, which are an external package because storetest imports this one.

var InstallCommand = installCommand

const SupervisorEnv = supervisorEnv

// WithServers returns a configuration that finds these servers only: folder to major version.
func WithServers(config Config, servers map[string]int) Config {
	config.find = func(major int) (binaries, error) {
		var dirs []string
		for dir := range servers {
			dirs = append(dirs, dir)
		}
		return choose(major, dirs, func(dir string) int { return servers[dir] })
	}
	return config
}
