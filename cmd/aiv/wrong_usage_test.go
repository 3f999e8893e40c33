package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

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
		{"acounts list", "unknown command \"acounts\"; did you mean `aiv accounts`?", top},
		{"Keys", "unknown command \"Keys\"; did you mean `aiv keys`?", top},
		{"frobnicate", "unknown command \"frobnicate\"; aiv has " + strings.Join(names(commands), ", "), top},
		{"keys rotat", "unknown command \"rotat\"; did you mean `aiv keys rotate`?", keys},
		{"keys ls", "unknown command \"ls\"; did you mean `aiv keys list`?", keys},
		{"providers mte", "unknown command \"mte\"; did you mean `aiv providers met`?", "aiv providers -h"},
		{"keys -json list", "flags follow the command: aiv keys COMMAND -flag", keys},
		{"help key", "unknown command \"key\"; did you mean `aiv keys`?", top},
		{"plans set growth", "aiv plans set needs -features", "aiv plans set -h"},
		{"plans set", "aiv plans set needs CODE and -features", "aiv plans set -h"},
		{"plans set a b -features x", "\"b\" is one argument too many for aiv plans set", "aiv plans set -h"},
		{"plans set a -features x,,y", "invalid value \"x,,y\" for flag -features: a word is missing before or after a comma", "aiv plans set -h"},
		{"plans set a -features x -rate many", "invalid value \"many\" for flag -rate: want a whole number of requests per minute", "aiv plans set -h"},
		{"plans set a -feature x", "unknown flag -feature; did you mean -features?", "aiv plans set -h"},
		{"plans list -frobnicate", "aiv plans list has no flag -frobnicate", "aiv plans list -h"},
		{"accounts create -name", "flag -name needs a value", "aiv accounts create -h"},
		{"accounts create", "aiv accounts create needs -name and -plan", "aiv accounts create -h"},
		{"accounts set-plan " + credential + " growth", "ID must be an account's id, acct_ and 26 characters; see aiv accounts list", "aiv accounts set-plan -h"},
		{"keys list -account ''", "-account must be an account's id, acct_ and 26 characters; see aiv accounts list", "aiv keys list -h"},
		{"keys revoke " + account, "ID must be a credential's id, cred_ and 26 characters; see aiv keys list", "aiv keys revoke -h"},
		{"keys revoke " + key, "ID must be a credential's id, cred_ and 26 characters; see aiv keys list", "aiv keys revoke -h"},
		{"keys revoke " + credential + " " + key, "\"aiv_live_01234567…\" is one argument too many for aiv keys revoke", "aiv keys revoke -h"},
		{"keys set " + credential, "nothing to set: give -name, -scopes, -rate or -expires", "aiv keys set -h"},
		{"keys set " + credential + " -expires tomorrow", "invalid value \"tomorrow\" for flag -expires: want a time of RFC 3339, such as 2031-01-31T00:00:00Z, or never", "aiv keys set -h"},
		{"keys rotate -json " + credential + " -grace soon", "invalid value \"soon\" for flag -grace: parse error", "aiv keys rotate -h"},
		{"catalog import", "aiv catalog import needs FILE", "aiv catalog import -h"},
		{"insights import", "aiv insights import needs FILE", "aiv insights import -h"},
		{"usage -from 2026", "invalid value \"2026\" for flag -from: want a month such as 2026-11", "aiv usage -h"},
		{"usage -to 2026-13", "invalid value \"2026-13\" for flag -to: want a month such as 2026-11", "aiv usage -h"},
		{"usage -from 2026-11 -to 2026-10", "-to must not be before -from", "aiv usage -h"},
		{"usage -account x", "-account must be an account's id, acct_ and 26 characters; see aiv accounts list", "aiv usage -h"},
		{"status -database-url x -data-dir y", "-data-dir and -database-url name two databases; give one of them", "aiv status -h"},
		{"providers met openai", "aiv providers met needs DEPENDENCY and -note", "aiv providers met -h"},
		{"plans list -database-url x -data-dir y", "-data-dir and -database-url name two databases; give one of them", "aiv plans list -h"},
		{"plans list postgres://me:sesame@host/db", "\"postgres://me:…@host/db\" is one argument too many for aiv plans list", "aiv plans list -h"},
	}
	for _, test := range tests {
		code, stdout, stderr := aiv(t.Context(), words(test.line)...)
		want := "aiv: " + test.fault + "\nRun `" + test.help + "` for help.\n"
		if code != 2 || stdout != "" || stderr != want {
			t.Errorf("aiv %s: exit %d, stdout %q, stderr\n%swant exit 2 and\n%s", test.line, code, stdout, stderr, want)
		}
	}
}

// Help that was asked for is what the command is for; help that stands in for a missing command is a complaint.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"-h", "--help", "help", "keys -h", "help keys", "help keys create", "keys create --help", "plans set x -features y -h"} {
		code, stdout, stderr := aiv(t.Context(), words(line)...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "\nUsage: aiv ") {
			t.Errorf("aiv %s: exit %d, stderr %q, stdout\n%s", line, code, stderr, stdout)
		}
	}
	for _, line := range []string{"", "keys"} {
		code, stdout, stderr := aiv(t.Context(), words(line)...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "aiv serves") && !strings.HasPrefix(stderr, "Issue, ") {
			t.Errorf("aiv %s: exit %d, stdout %q, stderr\n%s", line, code, stdout, stderr)
		}
	}
}

// The table is what people learn the commands from: each has a summary that fits a line, examples whose flags exist,
// and, but for those that serve or write for a shell, -json.
func TestTableOfCommands(t *testing.T) {
	t.Parallel()
	var walk func(prefix string, all []command)
	walk = func(prefix string, all []command) {
		for _, c := range all {
			name := prefix + " " + c.name
			if c.summary == "" || len(c.summary) > 90 || strings.HasSuffix(c.summary, ".") {
				t.Errorf("%s: summary %q: want a short line without a full stop", name, c.summary)
			}
			if (c.commands == nil) == (c.run == nil) {
				t.Errorf("%s: want either commands of its own or run", name)
			}
			if c.commands != nil {
				walk(name, c.commands)
				continue
			}
			if len(c.examples) == 0 {
				t.Errorf("%s has no example", name)
			}
			for _, example := range c.examples {
				line := redirection.ReplaceAllString(assignment.ReplaceAllString(example, ""), "")
				if !strings.HasPrefix(line, name) {
					t.Errorf("%s: example %q is of another command", name, example)
				}
				code, stdout, stderr := aiv(t.Context(), append(words(line)[1:], "-h")...)
				if code != 0 || !strings.Contains(stdout, example) {
					t.Errorf("%s: example %q: exit %d, %s", name, example, code, stderr)
				}
				if none := c.name == "serve" || c.name == "demo" || c.name == "completion"; !none && !strings.Contains(stdout, "-json") {
					t.Errorf("%s has no -json", name)
				}
			}
		}
	}
	walk("aiv", commands)
}

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"create", "list", "set", "rotate", "revoke", "disable", "enable"}
	for word, want := range map[string]string{
		"": "", "x": "", "lst": "list", "lsit": "list", "List": "list", "revok": "revoke", "rvoke": "revoke", "diable": "disable", "delete": "", "é": "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestNobodyReadsTheNullDevice(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	// The other side of a terminal is a character device like the terminal itself.
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	got := []bool{isTerminal(null), isTerminal(w), isTerminal(&strings.Builder{}), isTerminal(terminal)}
	if want := []bool{false, false, false, true}; !slices.Equal(got, want) {
		t.Errorf("null device, pipe, memory, terminal: %v, want %v", got, want)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, _ := aiv(t.Context(), "--version")
	if code != 0 || !strings.HasPrefix(stdout, "aiv ") || !strings.Contains(stdout, "go1.") {
		t.Errorf("exit %d, %q", code, stdout)
	}
	code, stdout, _ = aiv(t.Context(), "version", "-json")
	for _, member := range []string{"version", "commit", "committed_at", "modified", "go", "platform"} {
		if code != 0 || !strings.Contains(stdout, `"`+member+`":`) {
			t.Errorf("exit %d, no %s in %s", code, member, stdout)
		}
	}
}

// What the shell takes for itself of an example.
var (
	assignment  = regexp.MustCompile(`^([A-Z_]+=\S* )+`)
	redirection = regexp.MustCompile(` [<>|].*`)
)

func names(all []command) (names []string) {
	for _, c := range all {
		names = append(names, c.name)
	}
	return names
}
