package private

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

func dataDir(dir string) string      { return filepath.Join(dir, "pg") }
func serverLogDir(dir string) string { return filepath.Join(dir, "log") }

// serverArgs returns the command line with all settings; a later value overrides an earlier one. The files in the data
// folder stay as initdb wrote them, so that a newer aiv can change a setting.
func serverArgs(j job, socket string) []string {
	settings := []string{
		// A run that was accepted must survive a power failure. These are PostgreSQL's defaults, repeated because aiv
		// depends on them.
		"fsync=on", "synchronous_commit=on", "full_page_writes=on",

		"shared_buffers=256MB", "max_connections=100", "timezone=UTC", "log_timezone=UTC",

		// One file per weekday, overwritten after a week. Statements are not logged, as they contain clients' data.
		"logging_collector=on", "log_directory=" + serverLogDir(j.Dir), "log_filename=postgresql-%a.log",
		"log_truncate_on_rotation=on", "log_rotation_age=1d", "log_rotation_size=0", "log_file_mode=0600",
		"log_checkpoints=off", "log_min_error_statement=panic",
	}
	if j.Ephemeral {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	for _, name := range slices.Sorted(maps.Keys(j.Settings)) {
		settings = append(settings, name+"="+j.Settings[name])
	}
	// Authentication by trust is safe because only the server's account can enter the socket's folder.
	settings = append(settings, "listen_addresses=", "port="+socketPort, `unix_socket_directories="`+socket+`"`,
		"unix_socket_permissions=0700")
	args := []string{"-D", dataDir(j.Dir)}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	return args
}

// serverCommand returns a program of PostgreSQL that runs as the server's account.
func serverCommand(j job, name string, args ...string) *exec.Cmd {
	return commandOfServer(j, filepath.Join(j.Binaries, name), args...)
}

// commandOfServer returns any program that runs as the server's account.
func commandOfServer(j job, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = "/"
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if j.RunAs != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: j.RunAs.UID, Gid: j.RunAs.GID}
	}
	return cmd
}

// serverEnv returns the environment of supervisor and server. It has no PG* variables, and the locale of the messages
// that fault looks for.
func serverEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "GOCOVERDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
