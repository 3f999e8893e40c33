package private

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func dataDir(dir string) string      { return filepath.Join(dir, "pg") }
func serverLogDir(dir string) string { return filepath.Join(dir, "log") }

// serverArgs are all settings, on the command line: the files in the data
// folder stay as initdb wrote them, and a newer aiv changes a setting by being
// started.
func serverArgs(j job, socket string) []string {
	settings := map[string]string{
		// What was answered with 202 must survive the power cord. These are
		// PostgreSQL's own; they stand here because they are a promise of ours.
		"fsync":              "on",
		"synchronous_commit": "on",
		"full_page_writes":   "on",

		"shared_buffers":  "256MB",
		"max_connections": "100",
		"timezone":        "UTC",
		"log_timezone":    "UTC",

		// One file per weekday, written over a week later: at most a week of
		// log. No statements, which would put clients' data into it.
		"logging_collector":        "on",
		"log_directory":            serverLogDir(j.Dir),
		"log_filename":             "postgresql-%a.log",
		"log_truncate_on_rotation": "on",
		"log_rotation_age":         "1d",
		"log_rotation_size":        "0",
		"log_file_mode":            "0600",
		"log_checkpoints":          "off",
		"log_min_error_statement":  "panic",
	}
	if j.Ephemeral {
		settings["fsync"], settings["full_page_writes"], settings["synchronous_commit"] = "off", "off", "off"
	}
	maps.Copy(settings, j.Settings)
	maps.Copy(settings, map[string]string{
		// Trust is safe behind a folder that only the server's account enters.
		"listen_addresses":        "",
		"port":                    socketPort,
		"unix_socket_directories": `"` + socket + `"`,
		"unix_socket_permissions": "0700",
	})
	args := []string{"-D", dataDir(j.Dir)}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// serverCommand is a server binary as the server's account.
func serverCommand(j job, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(j.Binaries, name), args...)
	cmd.Dir = "/"
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if j.RunAs != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: j.RunAs.UID, Gid: j.RunAs.GID}
	}
	return cmd
}

// serverEnv is the environment of supervisor and server: no PG* variable may
// change what they do, and the messages are those that fault looks for.
func serverEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "GOCOVERDIR":
			env = append(env, entry)
		}
	}
	return env
}
