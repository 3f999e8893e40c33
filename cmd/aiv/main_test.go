package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
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

// A step is one command line, without the leading aiv, and its expected results. Single quotes join words.
type step struct {
	line  string
	stdin string
	piped bool // stdout is not a terminal

	code           int
	stdout, stderr string
}

// A story runs steps in order. Generated values (ids, keys, times) are replaced in the output by names in order of
// first appearance, {acct1}, and later command lines use these names.
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

// fails is a step that a command does not take.
func fails(line, fault string) step {
	return step{line: line, code: 1, stderr: "aiv: " + fault + "\n"}
}

// misuse is a step that the command does not understand.
func misuse(command, rest, fault string) step {
	help := "\nRun `aiv " + command + " -h` for help.\n"
	return step{line: command + " " + rest, code: 2, stderr: "aiv: " + fault + help}
}

// piped is a step whose output is no terminal.
func piped(s step) step {
	s.piped = true
	return s
}

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

// sampleAccount imports sampleCatalog and creates an account, whose id it returns.
func sampleAccount(t *testing.T, url string) string {
	t.Helper()
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	s.run(t, []step{importSample})
	return s.newAccount(t)
}

// importSample imports sampleCatalog.
var importSample = step{
	line: "catalog import -json -", stdin: sampleCatalog,
	stdout: `{"providers":1,"methodologies":1,"models":1,"questions":1}` + "\n",
}

// newAccount creates the account A on the plan p and returns its id, {acct1}.
func (s *story) newAccount(t *testing.T) string {
	t.Helper()
	s.run(t, []step{
		{line: "plans set p -features api_access", stdout: "Plan p is set: features api_access; 60 (default) requests per minute.\n"},
		{line: "accounts create -name A -plan p", stdout: "Account {acct1} was created: \"A\" on plan p.\n"},
	})
	return s.names[0]
}

var generated = regexp.MustCompile(`(acct|cred|wrk)_[0-9a-z]{26}\b|aiv_(?:live|work)_[0-9A-Za-z]{49}|aiv_live_[0-9A-Za-z]{8}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)

func (s *story) run(t *testing.T, steps []step) {
	t.Helper()
	for _, want := range steps {
		got := want
		line := s.values(want.line)
		var stdout, stderr bytes.Buffer
		p := testProgram(&stdout, &stderr, s.env)
		p.Stdin, p.Terminal = strings.NewReader(want.stdin), !want.piped
		got.code = p.Run(t.Context(), words(line))
		got.stdout, got.stderr = s.name(stdout.String()), s.name(stderr.String())
		want.stdout, want.stderr = strings.TrimLeft(want.stdout, "\n"), strings.TrimLeft(want.stderr, "\n")
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); diff != "" {
			t.Errorf("aiv %s (-want +got):\n%s", want.line, diff)
		}
	}
}

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
		kind := found[:4] // of an id
		switch {
		case strings.Contains(found, ":"):
			return "{time}"
		case kind == "aiv_" && len(found) > 20:
			kind = "key"
		case kind == "aiv_":
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
