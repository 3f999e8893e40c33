package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/store/private"

	"github.com/jackc/pgx/v5"
)

// A Cluster is a PostgreSQL server that a test may kill, stop, fill up or replace by its standby. It has PostgreSQL's
// default settings of durability, listens on a Unix socket only, and ends with the test. Its files are on disk if the
// fault tests run for minutes, else in memory: no test simulates the loss of what the kernel has.
type Cluster struct {
	Dir      string        // of Data and of the socket
	Settings []string      // name=value, for the next Start
	running  *os.Process   // nil: it does not run
	ended    chan struct{} // closed when running has ended
	log      string        // path of the server's log
	lock     *os.File      // Dir, locked until this process ends
}

// NewCluster creates a cluster with a migrated database "aiv" and starts it.
func NewCluster(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	c := unpackCluster(t, settings)
	c.Start(t)
	return c
}

// unpackCluster unpacks the files of a cluster, which are removed when the test ends.
func unpackCluster(t testing.TB, settings []string) *Cluster {
	t.Helper()
	c, err := makeCluster(settings)
	Must(t, err)
	// The log is shown before the folder that has it is removed.
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			t.Logf("the end of PostgreSQL's log:\n%s", c.endOfLog())
		}
		c.remove()
	})
	Must(t, Unpack(c.Data()))
	return c
}

// Standby creates and starts a streaming standby of the cluster.
func (c *Cluster) Standby(t testing.TB, settings ...string) *Cluster {
	t.Helper()
	// The primary began as the same copy, and keeps its log since.
	s := unpackCluster(t, settings)
	for name, text := range map[string]string{
		"standby.signal":       "",
		"postgresql.auto.conf": "primary_conninfo = 'host=" + c.Dir + " port=" + clusterPort + " user=aiv application_name=standby'\n",
	} {
		Must(t, os.WriteFile(filepath.Join(s.Data(), name), []byte(text), 0o644))
	}
	s.Start(t)
	return s
}

// clusterPort is part of the name of the socket. Each cluster has its own folder, so all have one port.
const clusterPort = "5432"

// makeCluster makes a folder for a cluster.
func makeCluster(settings []string) (*Cluster, error) {
	removeAbandoned()
	// The name of t.TempDir is too long for a socket, and the server's account cannot enter its parent.
	mkdir := MkdirTemp
	if Long() {
		mkdir = func(pattern string) (string, error) { return os.MkdirTemp("", pattern) }
	}
	dir, err := mkdir(clusterPrefix)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Settings: settings, log: filepath.Join(dir, "log")}
	if c.lock, err = lockDir(dir); err == nil {
		err = os.Mkdir(c.Data(), 0o700)
	}
	if err == nil {
		err = chownToServer(dir, c.Data())
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return c, nil
}

// Data returns the path of the data folder.
func (c *Cluster) Data() string { return filepath.Join(c.Dir, "data") }

// URL returns the URL of the database, for its owner.
func (c *Cluster) URL() string { return ClusterURL("", c) }

// ClusterURL returns one URL with several clusters as hosts.
func ClusterURL(parameters string, clusters ...*Cluster) string {
	var hosts, ports []string
	for _, c := range clusters {
		hosts, ports = append(hosts, c.Dir), append(ports, clusterPort)
	}
	return "postgres:///aiv?user=aiv&sslmode=disable&host=" + url.QueryEscape(strings.Join(hosts, ",")) + "&port=" + strings.Join(ports, ",") + parameters
}

// Start starts the server and returns when it accepts connections. It waits for processes of a killed server to end.
func (c *Cluster) Start(t testing.TB) {
	t.Helper()
	Must(t, c.start(t.Context()))
}

// start launches the server, again if it ends at once, until it accepts a connection or Patience is over.
func (c *Cluster) start(ctx context.Context) error {
	for deadline := time.Now().Add(Patience); ; {
		if c.running == nil {
			if err := c.launch(); err != nil {
				return err
			}
		}
		if c.ready() && c.ping(ctx) == nil {
			return nil
		}
		select {
		case <-c.ended: // a process of the killed server was still there
			c.running = nil
			time.Sleep(50 * time.Millisecond)
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("PostgreSQL does not start:\n%s", c.endOfLog())
		}
	}
}

// launch starts the server's first process, and returns without waiting for the server to be ready.
func (c *Cluster) launch() error {
	args := []string{"-D", c.Data(), "-k", c.Dir, "-p", clusterPort, "-c", "listen_addresses=", "-c", "shared_buffers=32MB",
		"-c", "autovacuum=off", "-c", "max_logical_replication_workers=0", // processes that tests do not need
		"-c", "wal_keep_size=128MB", // for Standby
		"-c", "wal_retrieve_retry_interval=50ms", // else a standby that loses its primary may sleep for 5 s
		"-c", "dynamic_shared_memory_type=mmap"} // in Data: a killed server leaves it behind
	for _, s := range c.Settings {
		args = append(args, "-c", s)
	}
	cmd, err := Command("postgres", args...)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	private.DieWithParent(cmd.SysProcAttr, syscall.SIGQUIT)
	started := make(chan error)
	c.ended = make(chan struct{})
	go func() {
		runtime.LockOSThread() // the server ends with the thread that started it
		defer close(c.ended)
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	c.running = cmd.Process
	return nil
}

// ready reports whether the server has started, by the last line of postmaster.pid. To connect until it has costs it a
// process each time.
func (c *Cluster) ready() bool {
	text, _ := os.ReadFile(filepath.Join(c.Data(), "postmaster.pid")) // missing: not yet
	// The first line is the process id, by which the file of a killed server is told apart.
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	state := strings.TrimSpace(lines[len(lines)-1])
	return lines[0] == strconv.Itoa(c.running.Pid) && (state == "ready" || state == "standby")
}

// ping connects. A server that started can be recovering from a crash.
func (c *Cluster) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, named(c.URL(), "postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// endOfLog returns the last bytes of the server's log, or nothing if there is none.
func (c *Cluster) endOfLog() []byte {
	text, _ := os.ReadFile(c.log)
	return text[max(0, len(text)-4000):]
}

// Kill ends all processes of the server by SIGKILL, as a power failure does.
func (c *Cluster) Kill() {
	if c.running == nil {
		return
	}
	c.signalAll(syscall.SIGKILL)
	<-c.ended
	c.running = nil
}

// remove removes the files of a cluster that does not run, and its System V shared memory: PostgreSQL does not get to
// remove that when it is killed, and the kernel keeps it until the machine restarts. Linux allows 4,096 such segments.
func (c *Cluster) remove() {
	pid, _ := os.ReadFile(filepath.Join(c.Data(), "postmaster.pid")) // missing: the server removed both
	// The seventh line is about the shared memory.
	if lines := strings.Split(string(pid), "\n"); len(lines) > 6 {
		if segment := strings.Fields(lines[6]); len(segment) == 2 { // its key and its id
			exec.Command("ipcrm", "-m", segment[1]).Run() // an error: it is gone already
		}
	}
	os.RemoveAll(c.Dir)
	c.lock.Close() // an error: there is none
}

// Freeze stops all processes of the server by SIGSTOP: it accepts connections and does not answer, until Thaw.
func (c *Cluster) Freeze() { c.signalAll(syscall.SIGSTOP) }

// Thaw continues the processes of a frozen server.
func (c *Cluster) Thaw() { c.signalAll(syscall.SIGCONT) }

// signalAll sends a signal to the server's first process and to its children, which are the sessions and background
// processes.
func (c *Cluster) signalAll(signal syscall.Signal) {
	// The children are listed first: a killed parent no longer has them.
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", c.running.Pid))
	c.running.Signal(signal)
	for child := range strings.FieldsSeq(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			syscall.Kill(n, signal)
		}
	}
}

// Stop stops the server in fast mode, which ends all sessions.
func (c *Cluster) Stop() {
	c.running.Signal(syscall.SIGINT)
	<-c.ended
	c.running = nil
}

// Exec runs statements in one of the cluster's databases, one after the other.
func (c *Cluster) Exec(t testing.TB, database string, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if err := execSQL(t.Context(), named(c.URL(), database), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
