package private_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// helperEnv contains the configuration of a private server. A copy of the test program that has it uses this server.
const helperEnv = "AIV_TEST_PRIVATE_USER"

func helpIfAsked() {
	private.RunSupervisorIfRequested()
	text := os.Getenv(helperEnv)
	if text == "" {
		return
	}
	var config private.Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		panic(err)
	}
	p, err := private.Start(context.Background(), config)
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

func startUser(t *testing.T, config private.Config) *user {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// folder returns an empty folder with a short name that every account can enter.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := storetest.MkdirTemp("aiv-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// lasting returns the configuration of a server that keeps its data.
func lasting(t *testing.T) private.Config {
	return private.Config{Dir: folder(t), Settings: cheap}
}

// ephemeral returns the configuration of a server whose folder is removed.
func ephemeral(t *testing.T) private.Config {
	t.Helper()
	return private.Config{Dir: filepath.Join(folder(t), "data"), Ephemeral: true, Archive: archive(t), Settings: cheap}
}

// archive returns the archive that replaces initdb where the test is not about it.
func archive(t *testing.T) string {
	t.Helper()
	path, err := storetest.Archive()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cheap are settings of servers that do little.
var cheap = map[string]string{"fsync": "off", "shared_buffers": "4MB", "max_connections": "20"}

func start(t *testing.T, config private.Config) *private.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := private.Start(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	return p
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
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// keep writes a row that must survive a restart.
func keep(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `CREATE TABLE kept AS SELECT 'safe' AS word`); err != nil {
		t.Fatal(err)
	}
}

// postmaster returns the process id of the server, 0 if it does not run.
func postmaster(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "pg", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

// ps returns a column of the process table, empty for a process that ended.
func ps(t *testing.T, pid int, column string) string {
	t.Helper()
	out, _ := exec.Command("ps", "-o", column+"=", "-p", strconv.Itoa(pid)).Output() // status 1: no such process
	return strings.TrimSpace(string(out))
}

func running(t *testing.T, pid int) bool {
	t.Helper()
	state := ps(t, pid, "stat")
	return state != "" && state[0] != 'Z'
}

func supervisor(t *testing.T, postmaster int) int {
	t.Helper()
	pid, err := strconv.Atoi(ps(t, postmaster, "ppid"))
	if err != nil || pid <= 1 {
		t.Fatalf("process %d has no supervisor: %d, %v", postmaster, pid, err)
	}
	return pid
}

func kill9(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
