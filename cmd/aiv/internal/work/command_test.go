package work

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aiv/store/strictjson"
)

// TestMessagesArePrintable: messages are what the worker interface accepts, which refuses noncharacters and more than
// 2,048 characters.
func TestMessagesArePrintable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"line\ttab \u2028 \U0010fffd é", "line\ttab \u2028 \U0010fffd é"},
		{"a\x00b", "a\ufffdb"},
		{"\ufdcf\ufdd0\ufdef\ufdf0", "\ufdcf\ufffd\ufffd\ufdf0"},
		{"\ufffd\ufffe\uffff", "\ufffd\ufffd\ufffd"},
		{"\U0001fffd\U0001fffe\U0010ffff", "\U0001fffd\ufffd\ufffd"},
		{"a\xff\xfeb\xc3", "a\ufffdb\ufffd"},
		{strings.Repeat("é", 2048), strings.Repeat("é", 2048)},
		{strings.Repeat("é", 2049), strings.Repeat("é", 2048)},
		{strings.Repeat("\xffa", 1025), strings.Repeat("\ufffda", 1024)},
	} {
		if got := printable(test.text); got != test.want {
			t.Errorf("printable(%+q) is %+q, want %+q", test.text, got, test.want)
		}
	}
}

// TestOutputLimits: an output is within the limits if a request that settles only its job is.
func TestOutputLimits(t *testing.T) {
	t.Parallel()
	const fewer = 999_000 // values than the limits, so that the test is fast
	limits := strictjson.Limits{Depth: outputLimits.Depth, Values: outputLimits.Values - fewer}
	for _, test := range []struct {
		name, output string
		want         bool
	}{
		{"depth", strings.Repeat("[", 13) + strings.Repeat("]", 13), true},
		{"more than the depth", strings.Repeat("[", 14) + strings.Repeat("]", 14), false},
		{"values", "[0" + strings.Repeat(",0", 992) + "]", true},
		{"more than the values", "[0" + strings.Repeat(",0", 993) + "]", false},
	} {
		s := newSettlement(&task{Job: Job{ID: "job_1", Attempt: 1}}, Completed{Raw: json.RawMessage(test.output)})
		_, ofOutput := strictjson.Parse(test.output, limits)
		_, ofRequest := strictjson.Parse(`{"jobs":[`+string(s.body)+`]}`, strictjson.Limits{Depth: 16, Values: 1_000_000 - fewer})
		if (ofOutput == nil) != test.want || (ofRequest == nil) != test.want {
			t.Errorf("%s: %v of the output, %v of the request, want errors: %t", test.name, ofOutput, ofRequest, !test.want)
		}
	}
}

// TestHeadAndTail: of what a command prints, the beginning of its output and the end of its errors are kept.
func TestHeadAndTail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		writes     []string
		head, tail string
		over       bool
	}{
		{nil, "", "", false},
		{[]string{"abcd"}, "abcd", "abcd", false},
		{[]string{"abcde"}, "abcd", "bcde", true},
		{[]string{"ab", "cd"}, "abcd", "abcd", false},
		{[]string{"abc", "def", "g"}, "abcd", "defg", true},
		{[]string{"abcde", ""}, "abcd", "bcde", true},
		{[]string{"a", "bcdefghi"}, "abcd", "fghi", true},
	} {
		h, tl := &head{max: 4}, &tail{max: 4}
		for _, text := range test.writes {
			for _, w := range []io.Writer{h, tl} {
				if n, err := io.WriteString(w, text); n != len(text) || err != nil {
					t.Errorf("%q: wrote %d, %v", test.writes, n, err)
				}
			}
		}
		if string(h.b) != test.head || h.over != test.over || string(tl.b) != test.tail {
			t.Errorf("%q: got %q, over %t, and %q", test.writes, h.b, h.over, tl.b)
		}
	}
}

// TestCommandsThatDoNotSimplyEnd: what becomes of jobs whose command does not simply end.
func TestCommandsThatDoNotSimplyEnd(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name    string
		ctx     context.Context
		command []string
		outcome string
		failure string // of the worker
	}{
		{"the worker has been asked to end", ended, []string{"/nonexistent"}, "released", "<nil>"},
		{"there is no such command", t.Context(), []string{"/nonexistent"}, "released", "the command cannot be started: "},
		{"the output stays open", t.Context(), shell(`sleep 3 & echo '{}'`).Args, "completed", "<nil>"},
	} {
		w, tasks, _ := newWorker(1, nil)
		w.cfg.Executor = Command{test.command, time.Second}
		s, ok := w.execute(test.ctx, tasks[0])
		if got := fmt.Sprint(w.failure()); !ok || s.outcome != test.outcome || !strings.HasPrefix(got, test.failure) {
			t.Errorf("%s: the job is %s (%t), the worker has the error %s", test.name, s.outcome, ok, got)
		}
	}
}

// TestProcessGroupEnds: when a lease is lost, or all commands must end, no process of the command's group is left.
func TestProcessGroupEnds(t *testing.T) {
	t.Parallel()
	const started = `echo $! >"$0.new" && mv "$0.new" "$0"`
	for name, script := range map[string]string{
		"on SIGTERM":                             `sleep 60 & ` + started + `; wait`,
		"not on SIGTERM":                         `trap '' TERM; sleep 60 & ` + started + `; wait`,
		"except a child":                         `trap '' TERM; sleep 60 >"$0.output" 2>&1 & trap - TERM; ` + started + `; wait`,
		"except a child with the output":         `trap '' TERM; sleep 60 & trap - TERM; ` + started + `; wait`,
		"before, except a child with the output": `sleep 60 & ` + started,
		"before with a failure, except a child with the output": `sleep 60 & ` + started + `; exit 1`,
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
