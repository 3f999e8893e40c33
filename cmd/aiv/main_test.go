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

// sampleAccount imports sampleCatalog and creates an account, whose id it returns.
func sampleAccount(t *testing.T, url string) string {
	t.Helper()
	s := &story{env: map[string]string{"DATABASE_URL": url}}
	s.importSample(t)
	return s.newAccount(t)
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

var generated = regexp.MustCompile(`(acct|cred|wrk)_[0-9a-z]{26}\b|aiv_(?:live|work)_[0-9A-Za-z]{49}|aiv_live_[0-9A-Za-z]{8}\b|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)

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
