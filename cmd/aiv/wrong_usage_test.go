package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
)

// Every one of these is refused before a database is looked for.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	account, credential := store.NewID().Text("acct"), store.NewID().Text("cred")
	const key = "aiv_live_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123"
	top, keys := "aiv -h", "aiv keys -h"
	tests := []struct {
		line, fault, help string
	}{
		{"plan list", "unknown command \"plan\"; did you mean `aiv plans`?", top},
		{"frobnicate", "unknown command \"frobnicate\"; the commands of aiv are " + strings.Join(names(commands()), ", "), top},
		{"keys rotat", "unknown command \"rotat\"; did you mean `aiv keys rotate`?", keys},
		{"keys -json list", "flags follow the command: aiv keys COMMAND -flag", keys},
		{"plans set 'a b' -features ''", "invalid plan code \"a b\": use 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit", "aiv plans set -h"},
		{"plans set a -features X", "invalid feature \"X\": use 1 to 64 of a-z, 0-9, _ and -, starting with a letter or digit", "aiv plans set -h"},
		{"plans set a -features x,,y", "invalid value \"x,,y\" for flag -features: a list element is empty", "aiv plans set -h"},
		{"plans list -frobnicate", "aiv plans list has no flag -frobnicate", "aiv plans list -h"},
		{"accounts create -name", "flag -name requires a value", "aiv accounts create -h"},
		{"accounts create -name \xff -plan growth", "-name is not valid UTF-8", "aiv accounts create -h"},
		{"accounts create", "aiv accounts create requires -name and -plan", "aiv accounts create -h"},
		{"accounts set-plan " + credential + " growth", "ID must be an account's id, acct_ and 26 characters; see aiv accounts list", "aiv accounts set-plan -h"},
		{"keys revoke " + key, "ID must be a credential's id, cred_ and 26 characters; see aiv keys list", "aiv keys revoke -h"},
		{"keys revoke " + credential + " " + key, "unexpected argument \"aiv_live_01234567…\" for aiv keys revoke", "aiv keys revoke -h"},
		{"keys set " + credential, "nothing to set: give -name, -scopes, -rate or -expires", "aiv keys set -h"},
		{"keys set " + credential + " -expires tomorrow", "invalid value \"tomorrow\" for flag -expires: must be an RFC 3339 time, such as 2031-01-31T00:00:00Z, or never", "aiv keys set -h"},
		{"keys create -account " + account + " -name ci -scopes foo",
			"unknown scope \"foo\"; the scopes are runs:read, runs:write, recommendations:read, alerts:read, webhooks:manage", "aiv keys create -h"},
		{"keys set " + credential + " -expires 2020-01-02T03:04:05Z",
			"the expiry 2020-01-02T03:04:05Z is in the past; use aiv keys revoke to end a key now", "aiv keys set -h"},
		{"usage -from 2026", "invalid value \"2026\" for flag -from: must be a month such as 2026-11", "aiv usage -h"},
		{"usage -from 2026-11 -to 2026-10", "-to must not be before -from", "aiv usage -h"},
		{"runs list -limit 10001", "-limit must be a whole number from 1 to 10000", "aiv runs list -h"},
		{"providers unmet openai key -note x", "DEPENDENCY must be one of configuration, secret, contract, legal_approval, not \"key\"", "aiv providers unmet -h"},
		{"plans list -database-url x -data-dir y", "-data-dir and -database-url name two databases; give one of them", "aiv plans list -h"},
		{"demo -webhook-allow-private=false", "aiv demo has no flag -webhook-allow-private", "aiv demo -h"},
		{"serve -max-connections 0", "-max-connections must be at least 1", "aiv serve -h"},
		{"serve -read-max-lag 1s", "-read-max-lag requires -read-url (AIV_READ_URL)", "aiv serve -h"},
		{"serve -read-url x -read-max-lag 2001ms", "-read-max-lag must be at most 2s", "aiv serve -h"},
		{"serve -admin-addr :http9", `the port of -admin-addr (AIV_ADMIN_ADDR) must be from 0 to 65535 or the name of a service, not "http9"`, "aiv serve -h"},
		{"webhooks listen -secret whsec_x -secret-file nosuch", "-secret-file and -secret name two secrets; give one of them", "aiv webhooks listen -h"},
		{"work -url http://127.0.0.1:1 -token-file nosuch", "aiv work requires COMMAND...", "aiv work -h"},
		{"work -engine openai -url http://127.0.0.1:1", "openai requires -engine-key-file or the environment variable OPENAI_API_KEY", "aiv work -h"},
		{"work -engine chat -engine-url http://a/v1 -url http://127.0.0.1:1", "aiv work requires -token-file and -provider", "aiv work -h"},
		{"work -engine gpt -explain", "-engine must be one of openai, anthropic, gemini, perplexity, xai, chat, not \"gpt\"", "aiv work -h"},
		{"work -engine openai -explain -- true", "-engine replaces COMMAND: give one of them", "aiv work -h"},
		{"work -engine openai -explain -try -model m", "-explain and -try exclude each other", "aiv work -h"},
		{"work -engine openai -explain -engine-timeout 4s", "-engine-timeout must be from 5s to 30m", "aiv work -h"},
		{"work -engine openai -explain -engine-resolve-links", "-engine-resolve-links is for gemini only", "aiv work -h"},
		{"work -engine openai -explain -engine-url http://proxy/v1", "-engine-url must begin with https://, except for loopback hosts and for chat without a key", "aiv work -h"},
		{"work -engine openai -try", "-try requires -model or -job", "aiv work -h"},
		{"work -engine openai -model m", "-job, -model and -json require -explain or -try", "aiv work -h"},
		{"work -url http://127.0.0.1:1 -token-file nosuch -parallel 0 -- true", "-parallel must be from 1 to 10000", "aiv work -h"},
		{"migrate -status -grant r", "-status changes nothing, and -distribute, -grant and -grant-dispatch do; give one of them", "aiv migrate -h"},
		{"migrate -grant r -grant-dispatch r", "-grant and -grant-dispatch each revoke what the other grants; give two roles", "aiv migrate -h"},
	}
	for _, test := range tests {
		code, stdout, stderr := aiv(t.Context(), words(test.line)...)
		want := "aiv: " + test.fault + "\nRun `" + test.help + "` for help.\n"
		if code != 2 || stdout != "" || stderr != want {
			t.Errorf("aiv %s: exit %d, stdout %q, stderr\n%swant exit 2 and\n%s", test.line, code, stdout, stderr, want)
		}
	}
}

// TestOptionsOfTheEnvironment: an error names the variable, and comes before the database is opened.
func TestOptionsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	const url = "postgres://127.0.0.1:1/aiv" // nothing listens there
	s := &story{env: map[string]string{"DATABASE_URL": url, "AIV_ADDR": "foo"}}
	s.run(t, []step{misuse("serve", "", "-addr (AIV_ADDR) must be HOST:PORT, not \"foo\"")})
	s = &story{env: map[string]string{"DATABASE_URL": url, "AIV_TLS_CERT": "nosuch", "AIV_TLS_KEY": "nosuch"}}
	s.run(t, []step{
		fails("serve", "-tls-cert (AIV_TLS_CERT): open nosuch: no such file or directory"),
		fails("dispatch -tls-cert wrong_usage_test.go", "-tls-key (AIV_TLS_KEY): open nosuch: no such file or directory"),
	})
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

func names(all []cli.Command) (names []string) {
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names
}

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
