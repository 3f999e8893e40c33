package private

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// binaries is the folder of postgres and initdb.
type binaries string

// run initializes the server's data if necessary, and runs it until its last user has ended. If the server ends first,
// this process exits with its status: 1 after a FATAL error. It must be called on the supervisor's locked thread.
func (b binaries) run(dir string, listener net.Listener) error {
	if err := makePrivate(logDir(dir)); err != nil {
		return err
	}
	if err := b.initialize(dir); err != nil {
		return err
	}
	removeStale(dir)
	server := b.command("postgres", serverArgs(dir)...)
	if err := server.Start(); err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	ended, last := make(chan struct{}), make(chan net.Conn, 1)
	go func() {
		server.Wait()
		close(ended)
	}()
	go func() { last <- awaitUsers(listener, func() bool { return isReady(dir, server.Process.Pid) }) }()
	select {
	case conn := <-last:
		defer runtime.KeepAlive(conn)
	case <-ended:
		fmt.Fprintf(os.Stderr, "postgres ended: %v; its log is in %s\n", server.ProcessState, logDir(dir))
		os.Exit(server.ProcessState.ExitCode()) // 255 after a signal
	}
	// SIGINT ends all sessions and writes everything to disk. After the others the next start recovers.
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		server.Process.Signal(signal)
		select {
		case <-ended:
			return nil
		case <-time.After(time.Minute):
		}
	}
	return nil
}

// isReady reports whether the server accepts connections, by the last line of postmaster.pid. A crash recovery can take
// minutes.
func isReady(dir string, pid int) bool {
	text, _ := os.ReadFile(pidFile(dir)) // missing: not yet
	lines := strings.Fields(string(text))
	return len(lines) > 1 && lines[0] == strconv.Itoa(pid) && lines[len(lines)-1] == "ready"
}

// removeStale removes the lock files of a killed server if their process id is now another process's. PostgreSQL
// does not start while its account has any process or thread of that id. In a container that was killed and started
// again, this is often one of aiv. An empty file, of a server that was starting when the machine failed, would prevent
// every start. Without /proc the kernel does not end a server with its supervisor, either: one that runs is stopped.
func removeStale(dir string) {
	text, err := os.ReadFile(pidFile(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // postgres reports it
	}
	var pid int
	fmt.Sscan(string(text), &pid)
	pid = max(pid, -pid) // negative: of a server without connections
	socket := filepath.Join(socketDir(dir), socketName)
	if exists("/proc/self/cwd") {
		data, _ := os.Stat(dataDir(dir))
		worksIn, _ := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid)) // of a server, its data folder
		if os.SameFile(worksIn, data) {
			return
		}
	} else if conn, err := net.Dial("unix", socket); err == nil {
		conn.Close()
		if pid > 1 {
			syscall.Kill(pid, syscall.SIGQUIT)
		}
		return // postgres reports its lock file, and is started again, until that server has ended
	} else if pid != 0 {
		return
	}
	os.Remove(pidFile(dir)) // if that fails, postgres reports the file
	os.Remove(socket + ".lock")
}

// serverArgs returns the command line with all settings. The files in the data folder stay as initdb wrote them, so that
// a newer aiv can change a setting.
func serverArgs(dir string) []string {
	args := []string{"-D", dataDir(dir)}
	for _, setting := range []string{
		// A run that was accepted must survive a power failure. These are PostgreSQL's defaults, repeated because aiv
		// depends on them.
		"fsync=on", "synchronous_commit=on", "full_page_writes=on",

		"shared_buffers=256MB", "max_connections=100", "timezone=UTC", "log_timezone=UTC",

		// One file per weekday, overwritten after a week. Statements are not logged, as they contain clients' data.
		"logging_collector=on", "log_directory=" + logDir(dir), "log_filename=postgresql-%a.log",
		"log_truncate_on_rotation=on", "log_rotation_age=1d", "log_rotation_size=0", "log_file_mode=0600",
		"log_checkpoints=off", "log_min_error_statement=panic",

		// Authentication by trust is safe because only the server's user can enter the socket's folder.
		"listen_addresses=", "port=" + socketPort, `unix_socket_directories="` + socketDir(dir) + `"`, "unix_socket_permissions=0700",
	} {
		args = append(args, "-c", setting)
	}
	return args
}

// command returns one of PostgreSQL's programs, which ends with the thread that starts it. SIGQUIT stops a server
// immediately.
func (b binaries) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(string(b), name), args...)
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.SysProcAttr = "/", serverEnv(), os.Stderr, &syscall.SysProcAttr{}
	DieWithParent(cmd.SysProcAttr, syscall.SIGQUIT)
	return cmd
}

// serverEnv returns the environment of supervisor and server. It has none of aiv's secrets, no PG* variables, and the
// locale of the messages that startSupervisor looks for.
func serverEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// initialize creates the data folder and its database if there is none. It is created under another name and renamed
// when complete, so that an interrupted one is never used. With locale C the order of text is the same on every machine
// and does not change with a library.
func (b binaries) initialize(dir string) error {
	leftovers, _ := fs.Glob(os.DirFS(dir), "pg.partial-*") // the pattern is valid
	for _, leftover := range leftovers {
		os.RemoveAll(filepath.Join(dir, leftover)) // a failure only wastes disk space
	}
	if exists(dataDir(dir)) {
		return nil
	}
	partial, err := os.MkdirTemp(dir, "pg.partial-")
	if err != nil {
		return err
	}
	initdb := b.command("initdb", "-D", partial, "--username=aiv", "--encoding=UTF8", "--locale=C", "--auth=trust", "--no-instructions",
		"--data-checksums")
	if err := initdb.Run(); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	// Without a server, so that a renamed folder always has the database.
	create := b.command("postgres", "--single", "-c", "exit_on_error=on", "-D", partial, "postgres")
	create.Stdin = strings.NewReader("CREATE DATABASE aiv;\n")
	if err := create.Run(); err != nil {
		return fmt.Errorf("create database aiv: %w", err)
	}
	if err := os.Rename(partial, dataDir(dir)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makePrivate makes a folder that only the server's user can enter.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkPrivate(dir, uint32(os.Geteuid()))
}

// checkPrivate reports an error if other users can enter a folder, or if it is a link.
func checkPrivate(dir string, uid uint32) error {
	info, err := os.Lstat(dir)
	if err == nil && (!info.IsDir() || ownerOf(info) != uid || info.Mode().Perm() != 0o700) {
		err = fmt.Errorf("%s is not a private folder of user %d: it is %v of user %d", dir, uid, info.Mode(), ownerOf(info))
	}
	return err
}

const socketPort, socketName = "5432", ".s.PGSQL.5432"

// socketDir returns the path of the folder of the sockets of server and supervisor. It is in the server's folder, unless
// that path is too long for a socket address or has what the URL or the server's setting cannot contain: a comma
// separates hosts, and a quote ends the setting.
func socketDir(dir string) string {
	in := filepath.Join(dir, "socket")
	const maxPath = 103 // on Linux 107
	if len(in)+1+len(socketName) <= maxPath && !strings.ContainsAny(in, `,"'\`) {
		return in
	}
	sum := sha256.Sum256([]byte(dir))
	return "/tmp/aiv-" + hex.EncodeToString(sum[:8])
}

// usersAddr is the address at which users connect to the supervisor.
func usersAddr(dir string) *net.UnixAddr {
	return &net.UnixAddr{Net: "unix", Name: filepath.Join(socketDir(dir), "users")}
}

func socketURL(dir string) string {
	query := url.Values{
		"host": {socketDir(dir)}, "port": {socketPort}, "user": {"aiv"}, "sslmode": {"disable"},
		"target_session_attrs": {"any"}, "channel_binding": {"disable"}, // whatever PG* variables require of other servers
	}.Encode()
	// In a PostgreSQL URL a plus is no space.
	u := url.URL{Scheme: "postgres", Path: "/aiv", RawQuery: strings.ReplaceAll(query, "+", "%20")}
	return u.String()
}
