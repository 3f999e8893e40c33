package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
	"aiv/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// A story runs commands in order. Single quotes join words. Generated values (ids, keys, times) are replaced in the
// output by names in order of first appearance, {acct1}, and later command lines use these names.
type story struct {
	env   map[string]string
	names []string // value, name, value, name...
}

// newStory returns a story in a database of its own.
func newStory(t *testing.T) *story {
	t.Helper()
	return &story{env: map[string]string{"DATABASE_URL": storetest.URL(t)}}
}

func (s *story) url() string { return s.env["DATABASE_URL"] }

// prints is a command line, its exit status, and a pattern of what it prints.
type prints struct {
	line    string
	code    int
	pattern string
}

// expect runs a command line in a database and returns its stdout.
func (p prints) expect(t *testing.T, url string) (stdout string) {
	t.Helper()
	code, stdout, stderr := aiv(t.Context(), append(words(p.line), "-database-url", url)...)
	if code != p.code || !regexp.MustCompile(p.pattern).MatchString(stdout+stderr) {
		t.Errorf("aiv %s: exit %d, %s%s; want %d, %s", p.line, code, stdout, stderr, p.code, p.pattern)
	}
	return stdout
}

// expect runs command lines in a database.
func expect(t *testing.T, url string, commands ...prints) {
	t.Helper()
	for _, p := range commands {
		p.expect(t, url)
	}
}

// importSample imports sampleCatalog.
func (s *story) importSample(t *testing.T) {
	t.Helper()
	input := "< " + strings.ReplaceAll(strings.TrimSpace(sampleCatalog), "\n", "\n< ") + "\n"
	s.prints(t, "catalog import -", input+"Imported 1 provider, 1 model, 1 question and 1 methodology.\n")
}

// newAccount creates the account A on the plan p and returns its id, {acct1}.
func (s *story) newAccount(t *testing.T) string {
	t.Helper()
	s.prints(t, "plans set p -features api_access", "Plan p is set: features api_access; 60 (default) requests per minute.\n")
	s.prints(t, "accounts create -name A -plan p", "Account {acct1} was created: \"A\" on plan p.\n")
	return s.values("{acct1}")
}

// prints runs a command that prints a text, with its input and stderr as in a file of commands.
func (s *story) prints(t *testing.T, line, want string) {
	t.Helper()
	equal(t, want, s.transcript(t, line, want), "aiv "+line)
}

// failure is what a command prints that fails.
func failure(fault string) string { return "! aiv: " + fault + "\n! exit 1\n" }

// misuse is what a command prints that is not understood.
func misuse(command, fault string) string {
	return "! aiv: " + fault + "\n! Run `aiv " + command + " -h` for help.\n! exit 2\n"
}

var generated = regexp.MustCompile(`(?:acct|cred|wrk|run|sched|wh)_[0-9a-z]{26}\b|job_[0-9a-z]{58}\b|aiv_(?:live|work)_[0-9A-Za-z]{49}|aiv_live_[0-9A-Za-z]{8}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)

// values replaces names by the generated values.
func (s *story) values(text string) string {
	for i := 0; i < len(s.names); i += 2 {
		text = strings.ReplaceAll(text, s.names[i+1], s.names[i])
	}
	return text
}

// name replaces generated values by their names.
func (s *story) name(text string) string {
	return generated.ReplaceAllStringFunc(text, func(found string) string {
		if i := slices.Index(s.names, found); i >= 0 {
			return s.names[i+1]
		}
		kind, _, _ := strings.Cut(found, "_") // of an id
		switch {
		case strings.Contains(found, ":"):
			return "{time}"
		case kind == "aiv" && len(found) > 20:
			kind = "key"
		case kind == "aiv":
			kind = "prefix"
		}
		name := fmt.Sprintf("{%s%d}", kind, 1+strings.Count(strings.Join(s.names, " "), "{"+kind))
		s.names = append(s.names, found, name)
		return name
	})
}

var word = regexp.MustCompile(`(?:'[^']*'|[^\s'])+`)

func words(line string) []string {
	found := word.FindAllString(line, -1)
	for i := range found {
		found[i] = strings.ReplaceAll(found[i], "'", "")
	}
	return found
}

func testProgram(stdout, stderr io.Writer, env map[string]string) *cli.Program {
	p := newProgram()
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(""), stdout, stderr
	p.Getenv = func(name string) string { return env[name] }
	return p
}

// aiv runs one command line as main does.
func aiv(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

var must, equal = storetest.Must, storetest.Equal

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	return storetest.Open(t, url, store.Open, 2)
}

var update = flag.Bool("update", false, "rewrite the output in testdata/commands")

// TestCommands runs the commands in each file of testdata/commands, in a database of its own, and compares the file with
// what they print; -update rewrites it. Lines that begin with "< " are their input, lines that begin with "! " their
// stderr. "| cat": the output is no terminal. Generated ids, keys and times are named as a story names them. The
// commands in usage.txt have no database: they are refused before one is looked for. Other tests follow the files in
// testdata/stories.
func TestCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/commands/*.txt")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no files")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			s := &story{}
			if filepath.Base(file) != "usage.txt" {
				s = newStory(t)
				s.env["AIV_ACTOR"] = "ann@desk"
			}
			s.follow(t, file)
		})
	}
}

// follow runs the commands in a file, and compares it with what they print.
func (s *story) follow(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	parts := strings.Split(string(text), "\n$ aiv ")
	got := parts[0]
	for _, part := range parts[1:] {
		line, rest, _ := strings.Cut(part, "\n")
		got += "\n$ aiv " + line + "\n" + s.transcript(t, line, rest)
	}
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o644))
	} else if diff := cmp.Diff(string(text), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// tableTime is the time of a row in a table. The times that files set are of other centuries.
var tableTime = regexp.MustCompile(`\b20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// transcript runs a command and returns what follows it in a file. rest is what follows it there now.
func (s *story) transcript(t *testing.T, line, rest string) string {
	t.Helper()
	var input, shown, stdout, stderr bytes.Buffer
	for given := range strings.Lines(rest) {
		text, ok := strings.CutPrefix(given, "< ")
		if !ok {
			break
		}
		input.WriteString(s.values(text))
		shown.WriteString(given)
	}
	line, piped := strings.CutSuffix(line, " | cat")
	p := testProgram(&stdout, &stderr, s.env)
	p.Stdin, p.Terminal = &input, !piped
	code := p.Run(t.Context(), words(s.values(line)))
	shown.WriteString(s.name(tableTime.ReplaceAllString(stdout.String(), "{time}")))
	for text := range strings.Lines(s.name(stderr.String())) {
		shown.WriteString("! " + text)
	}
	if code != 0 {
		fmt.Fprintf(&shown, "! exit %d\n", code)
	}
	return shown.String()
}
