package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/cli"
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

// Requested help is output; help shown for a missing command is an error.
func TestHelpIsOutput(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"-h", "--help", "help", "keys -h", "help keys", "help keys create", "keys create --help", "plans set x -features y -h"} {
		code, stdout, stderr := aiv(t.Context(), words(line)...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "\nUsage: aiv ") {
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

// The table is what people learn the commands from: each has a summary that fits a line, examples whose flags exist,
// and, but for those that serve or write for a shell, -json.
func TestTableOfCommands(t *testing.T) {
	t.Parallel()
	var walk func(prefix string, all []cli.Command)
	walk = func(prefix string, all []cli.Command) {
		for _, c := range all {
			name := prefix + " " + c.Name
			if c.Summary == "" || len(c.Summary) > 90 || strings.HasSuffix(c.Summary, ".") {
				t.Errorf("%s: summary %q: want a short line without a full stop", name, c.Summary)
			}
			if (c.Commands == nil) == (c.Run == nil) {
				t.Errorf("%s: want either subcommands or run", name)
			}
			if c.Commands != nil {
				walk(name, c.Commands)
				continue
			}
			if len(c.Examples) == 0 {
				t.Errorf("%s has no example", name)
			}
			for _, example := range c.Examples {
				line := redirection.ReplaceAllString(assignment.ReplaceAllString(example, ""), "")
				if !strings.HasPrefix(line, name) {
					t.Errorf("%s: example %q is of another command", name, example)
				}
				code, stdout, stderr := aiv(t.Context(), slices.Insert(words(line)[1:], len(words(name))-1, "-h")...)
				if code != 0 || !strings.Contains(stdout, example) {
					t.Errorf("%s: example %q: exit %d, %s", name, example, code, stderr)
				}
				if !slices.Contains([]string{"serve", "dispatch", "work", "listen", "demo", "completion"}, c.Name) && !strings.Contains(stdout, "-json") {
					t.Errorf("%s has no -json", name)
				}
			}
		}
	}
	walk("aiv", commands())
}

func TestVersionIsPrinted(t *testing.T) {
	t.Parallel()
	prints := func(line, pattern string) {
		t.Helper()
		if code, stdout, _ := aiv(t.Context(), words(line)...); code != 0 || !regexp.MustCompile(pattern).MatchString(stdout) {
			t.Errorf("aiv %s: exit %d, %s", line, code, stdout)
		}
	}
	prints("--version", `^aiv .*go1\.`)
	prints("version -json", `^\{"version":.*"commit":.*"committed_at":.*"modified":.*"go":.*"platform":`)
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
