package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/engines/enginestest"
)

// TestOptionsOfTheEnvironment: an error names the variable, and comes before the database is opened.
func TestOptionsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	s := &story{env: map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/aiv"}} // nothing listens there
	s.prints(t, "demo -data-dir absent", misuse("demo",
		"aiv demo never writes to another database; unset DATABASE_URL and leave -database-url out, or run aiv serve"))
	s.prints(t, "accounts create -name \xff -plan growth", misuse("accounts create", "-name is not valid UTF-8"))
	s.env["AIV_TLS_CERT"], s.env["AIV_TLS_KEY"] = "nosuch", "nosuch"
	s.prints(t, "serve", failure("-tls-cert (AIV_TLS_CERT): open nosuch: no such file or directory"))
	s.prints(t, "dispatch -tls-cert wrong_usage_test.go", failure("-tls-key (AIV_TLS_KEY): open nosuch: no such file or directory"))
	s.env["AIV_ADDR"] = "foo"
	s.prints(t, "serve", misuse("serve", "-addr (AIV_ADDR) must be HOST:PORT, not \"foo\""))
}

// Requested help and the version are output; help shown for a missing command is an error.
func TestHelpIsOutput(t *testing.T) {
	t.Parallel()
	const help = `\nUsage: aiv `
	for line, want := range map[string]string{
		"-h": help, "--help": help, "help": help, "keys -h": help, "help keys": help, "help keys create": help, "keys create --help": help,
		"plans set x -features y -h": help, "--version": `^aiv .*go1\.`,
		"version -json": `^\{"version":.*"commit":.*"committed_at":.*"modified":.*"go":.*"platform":`,
	} {
		code, stdout, stderr := aiv(t.Context(), words(line)...)
		if code != 0 || stderr != "" || !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("aiv %s: exit %d, stderr %q, stdout\n%s", line, code, stderr, stdout)
		}
	}
	for line, want := range map[string]string{"": "aiv serves", "keys": "Create, change"} {
		code, stdout, stderr := aiv(t.Context(), words(line)...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("aiv %s: exit %d, stdout %q, stderr\n%s", line, code, stdout, stderr)
		}
	}
}

// TestTableOfCommands: each command has a summary that fits a line, examples whose flags exist, and, but for those that
// serve or write for a shell, -json.
func TestTableOfCommands(t *testing.T) {
	t.Parallel()
	var walk func(prefix string, all []cli.Command)
	walk = func(prefix string, all []cli.Command) {
		for _, c := range all {
			name := prefix + " " + c.Name
			if len(c.Summary) > 90 || c.Commands == nil && len(c.Examples) == 0 {
				t.Errorf("%s has no example, or a long summary: %s", name, c.Summary)
			}
			for _, example := range c.Examples {
				line := redirection.ReplaceAllString(assignment.ReplaceAllString(example, ""), "")
				code, stdout, stderr := aiv(t.Context(), slices.Insert(words(line)[1:], len(words(name))-1, "-h")...)
				withoutJSON := slices.Contains([]string{"serve", "dispatch", "work", "listen", "demo", "completion"}, c.Name)
				if code != 0 || !strings.HasPrefix(line, name) || !strings.Contains(stdout, example) || !withoutJSON && !strings.Contains(stdout, "-json") {
					t.Errorf("%s: example %q: exit %d, %s%s", name, example, code, stdout, stderr)
				}
			}
			walk(name, c.Commands)
		}
	}
	walk("aiv", commands())
}

// What the shell takes for itself of an example.
var (
	assignment  = regexp.MustCompile(`^([A-Z_]+=\S* )+`)
	redirection = regexp.MustCompile(` [<>|].*`)
)

// TestNoMessageHasASecret: no message contains a key, a password or a secret.
func TestNoMessageHasASecret(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		`aiv_live_01234567sesame`, `aiv_work_01234567sesame`, `whsec_sesame`, `unexpected argument "whsec_ses/ame="`,
		`password=sesame`, `PASSWORD = sesame`, `password='ses ame' host=h`, `password='a\'b sesame'`, fmt.Sprintf("%q", `password='a\'b sesame'`), `password=ab&sesame`,
		`password=ses\ ame`, `password=ses'ame`, `postgres://me:ses"ame@h/db`, fmt.Sprintf("%q", `postgres://me:ses"ame@h/db`),
		`postgres://me:sesame@h/db`, `postgres://me:ses ame@h/db`, `postgres://me:ses@me:sesame@h/db`, `postgres://h/db?password=sesame`,
	} {
		if got := redact(message); strings.Contains(got, "ses") || strings.Contains(got, "ame") {
			t.Errorf("%s becomes %s", message, got)
		}
	}
	for _, message := range []string{"http://127.0.0.1:8080 is in use", "the header X-Password is unknown", `open "a@b": no such file`, "aiv_live_01234567"} {
		if got := redact(message); got != message {
			t.Errorf("%s becomes %s", message, got)
		}
	}
}

// TestEngineTry: -try sends a request and settles nothing; its outcome decides the exit status. Neither -try nor -explain
// nor an error prints the key, of a file or of the environment. testdata/commands/explain.txt has the rest.
func TestEngineTry(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, []byte("two words"), 0o600))
	fake := enginestest.New(t, "openai")
	const noQuota = `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`
	fake.Then(enginestest.Answer(200, fake.Short()), enginestest.Answer(429, noQuota))
	try := "-try -engine-url " + fake.URL
	for _, test := range []struct {
		args, key string // in the environment
		code      int
		want      string
	}{
		{"-explain -engine-max-output 256", enginestest.Key, 0, `"max_output_tokens": 256`},
		{try, enginestest.Key, 0, `{"outcome":"completed","answer":{"text":"Kovalt."`},
		{try, enginestest.Key, 1, `{"outcome":"unavailable","reason":"contract",`},
		{"-try -engine-key-file " + file, "", 1, file + " does not contain a key"},
		{"-try", "two words", 1, "OPENAI_API_KEY does not contain a key"},
		{"-try", " ", 2, "OPENAI_API_KEY"},
	} {
		var stdout, stderr strings.Builder // the log is written to stderr at any time
		p := testProgram(&stdout, &stderr, map[string]string{"OPENAI_API_KEY": test.key})
		code := p.Run(t.Context(), words("work -engine openai -model m "+test.args))
		printed := stdout.String() + stderr.String()
		if code != test.code || !strings.Contains(printed, test.want) ||
			strings.Contains(printed, enginestest.Key) || strings.Contains(printed, "two words") {
			t.Errorf("aiv work %s: exit %d, want %d, %s: %s", test.args, code, test.code, test.want, printed)
		}
	}
}
