package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
