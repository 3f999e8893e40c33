package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// JSONFlag declares -json, which every command that prints has.
func (c *Call) JSONFlag() {
	c.Flags.BoolVar(&c.asJSON, "json", false, "print JSON: one object or, for a list, one array")
}

// AsJSON reports whether -json was given.
func (c *Call) AsJSON() bool { return c.asJSON }

// Print writes v as JSON with -json, and otherwise what text writes, in which a tab ends a table cell. On a terminal
// the columns are aligned; elsewhere the tabs stay, for cut and awk. The output has no color.
func (c *Call) Print(v any, text func(w io.Writer)) error {
	// Everything is written at once, so that a reader gets no part of an output that fails.
	var b bytes.Buffer
	if c.asJSON {
		e := json.NewEncoder(&b)
		// <, > and & stay readable: no output is embedded in HTML.
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return err
		}
	} else if !c.Terminal {
		text(&b)
	} else {
		w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
		text(w)
		w.Flush()
	}
	if _, err := b.WriteTo(c.Stdout); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// PrintList prints a list: with -json as an array, and otherwise as a table. rows has the header and then a row for
// each element. If the list is empty, it prints the text none.
func (c *Call) PrintList(list any, rows [][]string, none string) error {
	return c.Print(list, func(w io.Writer) {
		if len(rows) == 1 {
			fmt.Fprintln(w, none)
			return
		}
		for _, r := range rows {
			Row(w, r...)
		}
	})
}

// Row writes one table row.
func Row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.Map(harmless, cell)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// harmless replaces control characters, and characters that change the direction of the text after them, so that a text
// can neither break a table nor control the terminal.
func harmless(r rune) rune {
	if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
		return unicode.ReplacementChar
	}
	return r
}

// List formats a list for people.
func List(values []string) string {
	if len(values) == 0 {
		return "none"
	}
	return strings.Join(values, ",")
}

// Count formats a number with its noun: 1 line, 2 lines.
func Count[N ~int | ~int64](n N, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// IsTerminal reports whether w is a terminal. The null device is a character device too, but not a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// LinesRead describes the progress of an import.
func LinesRead(n int) string { return "Reading the file: " + Count(n, "line", "lines") }

// progressStep is the least time between two rewrites of the line.
const progressStep = 100 * time.Millisecond

// Progress returns a function that shows on stderr how far a command is, and one that erases that line before other
// output. text describes the progress at n. Without a terminal on stderr, both functions do nothing.
func (c *Call) Progress(text func(n int) string) (report func(n int), end func()) {
	if !IsTerminal(c.Stderr) {
		return func(int) {}, func() {}
	}
	next, shown := time.Now().Add(progressStep), false
	report = func(n int) {
		if t := time.Now(); t.After(next) {
			next, shown = t.Add(progressStep), true
			fmt.Fprintf(c.Stderr, "\r%s …", text(n))
		}
	}
	end = func() {
		if shown {
			fmt.Fprint(c.Stderr, "\r\x1b[K") // ECMA-48's erase in line
		}
	}
	return report, end
}
