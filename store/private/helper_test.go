package private_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/store/private"
	"aiv/store/storetest"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) {
	helpIfAsked()
	storetest.Main(m)
}

// helperEnv contains the folder of a private server. A copy of the test program that has it uses this server.
const helperEnv = "AIV_TEST_PRIVATE_USER"

func helpIfAsked() {
	private.RunSupervisorIfRequested()
	text := os.Getenv(helperEnv)
	if text == "" {
		return
	}
	p, err := private.Start(context.Background(), text, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.URL())
	io.Copy(io.Discard, os.Stdin) // until the test closes it
	p.Close()
	os.Exit(0)
}

// user is another process that uses a private server.
type user struct {
	cmd   *exec.Cmd
	stdin io.Closer
	says  *bufio.Reader
}

func startUser(t *testing.T, dir string) *user {
	t.Helper()
	cmd := exec.Command("sh", "-c", `umask 077 && exec "$0"`, os.Args[0]) // the server must not depend on it
	cmd.Env = append(os.Environ(), helperEnv+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &user{cmd: cmd, stdin: stdin, says: bufio.NewReader(stdout)}
}

// url waits until the user's server is ready.
func (u *user) url(t *testing.T) string {
	t.Helper()
	line, err := u.says.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "postgres://") {
		t.Fatalf("user of a private server said %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (u *user) end(t *testing.T) {
	t.Helper()
	u.stdin.Close()
	if err := u.cmd.Wait(); err != nil {
		t.Errorf("user of a private server: %v", err)
	}
}

var must, equal = storetest.Must, storetest.Equal

// folder returns an empty folder with a short name that every account can enter.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := storetest.MkdirTemp("aiv-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// made returns a folder in which a shell script was executed.
func made(t *testing.T, script string) string {
	t.Helper()
	dir := folder(t)
	cmd := exec.Command("sh", "-e", "-c", "umask 022; "+script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return dir
}

// ofServer is a script that gives files to an account that the server may run as.
func ofServer(files string) string { return `; [ "$(id -u)" != 0 ] || chown nobody ` + files }

// existing returns the folder of a server that has data. To unpack it replaces initdb, which takes ten times as long.
func existing(t *testing.T) string {
	t.Helper()
	dir := made(t, `mkdir -m 700 pg; touch aiv-private-postgresql`)
	must(t, storetest.Unpack(filepath.Join(dir, "pg")))
	return dir
}

func start(t *testing.T, dir string) *private.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := private.Start(ctx, dir, slog.New(slog.DiscardHandler))
	must(t, err)
	return p
}

// refused returns the error of a start, which must not succeed.
func refused(t *testing.T, dir string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := private.Start(ctx, dir, slog.New(slog.DiscardHandler))
	if err == nil {
		p.Close()
		t.Fatal("a server was started")
	}
	return err.Error()
}

// ask returns the single text that a query selects.
func ask(url, sql string) (text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, sql).Scan(&text)
	return text, err
}

func mustAsk(t *testing.T, url, sql string) string {
	t.Helper()
	text, err := ask(url, sql)
	must(t, err)
	return text
}

func isGone(path string) bool {
	_, err := os.Lstat(path)
	return os.IsNotExist(err)
}

// postmaster returns the process id of the server, 0 if it does not run.
func postmaster(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "pg", "postmaster.pid"))
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

// ps returns a column of the process table, empty for a process that ended.
func ps(pid int, column string) string {
	out, _ := exec.Command("ps", "-o", column+"=", "-p", strconv.Itoa(pid)).Output() // status 1: no such process
	return strings.TrimSpace(string(out))
}

func running(pid int) bool {
	state := ps(pid, "stat")
	return state != "" && state[0] != 'Z'
}

func supervisor(t *testing.T, postmaster int) int {
	t.Helper()
	pid, err := strconv.Atoi(ps(postmaster, "ppid"))
	if err != nil || pid <= 1 {
		t.Fatalf("process %d has no supervisor: %d, %v", postmaster, pid, err)
	}
	return pid
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}
