package work

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestOutcomesOfCommands: what a command prints is the answer, its exit status decides about a failure, and the last line
// of its errors says why.
func TestOutcomesOfCommands(t *testing.T) {
	t.Parallel()
	failed := func(code, message string) string {
		return fmt.Sprintf(`{"outcome":"failed","error":{"code":%q,"message":%q}}`, code, message)
	}
	for command, want := range map[string]string{
		`cat`:                                   `{"outcome":"completed","answer":{"id":"job_1"}}`,
		`echo first >&2; echo last >&2; exit 3`: failed("exit_3", "last"),
		`echo later >&2; exit 75`:               `{"outcome":"retry","error":{"code":"temporary","message":"later"},"after_seconds":null}`,
		`kill -9 $$`:                            failed("exit_137", ""),
		`:`:                                     failed("invalid_answer", "the output is empty"),
		`echo no`:                               failed("invalid_answer", "the output is not JSON"),
		`echo '{"text":"a","text":"b"}'`: failed("invalid_answer",
			`the output is not strict JSON: at byte 12: member "text" appears twice`),
		`head -c 5242881 /dev/zero`: failed("invalid_answer", "the output is longer than 5242880 bytes"),
	} {
		got := Encode(shell(command).Execute(t.Context(), Job{Raw: json.RawMessage(`{"id":"job_1"}`)}))
		equal(t, command, string(got), want)
	}
}

// TestProcessGroupEnds: when a lease is lost, or all commands must end, no process of the command's group is left.
func TestProcessGroupEnds(t *testing.T) {
	t.Parallel()
	const started = `echo $! >"$0.new" && mv "$0.new" "$0"`
	for name, script := range map[string]string{
		"on SIGTERM":                             `sleep 60 & ` + started + `; wait`,
		"not on SIGTERM":                         `trap '' TERM; sleep 60 & ` + started + `; wait`,
		"except a child with the output":         `trap '' TERM; sleep 60 & trap - TERM; ` + started + `; wait`,
		"before, except a child with the output": `sleep 60 & ` + started,
	} {
		for _, lost := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, lost %t", name, lost), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "child")
				w, tasks, _ := newWorker(1, nil)
				killAfter := 100 * time.Millisecond
				if strings.HasPrefix(name, "before") {
					killAfter = 2 * time.Second // by then the job must be lost or canceled, or it would have an outcome
				}
				w.cfg.Executor = Command{shell(script, file).Args, killAfter}
				go func() {
					awaitFile(t.Context(), file)
					if lost {
						w.lose(tasks[0], "lost")
					} else {
						tasks[0].cancel(nil)
					}
				}()
				if s, ok := w.execute(t.Context(), tasks[0]); ok == lost || ok && s.outcome != "released" {
					t.Errorf("the job is %s: %t", s.outcome, ok)
				}
				child, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				running := func() bool {
					stat, err := os.ReadFile("/proc/" + string(bytes.TrimSpace(child)) + "/stat")
					return err == nil && !strings.Contains(string(stat), ") Z ")
				}
				for end := time.Now().Add(time.Minute); running(); <-time.After(5 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("the child %s is left", child)
					}
				}
			})
		}
	}
}
