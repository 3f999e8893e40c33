package cli

import (
	"fmt"
	"io"
	"time"
)

// Progress returns a function that shows on stderr how far a command is, and one that erases that line before other
// output. text describes the progress at n. Without a terminal on stderr, both functions do nothing.
func (c *Call) Progress(text func(n int) string) (report func(n int), end func()) {
	if !IsTerminal(c.Stderr) {
		return func(int) {}, func() {}
	}
	return progressOn(c.Stderr, time.Now, text)
}

// LinesRead describes the progress of an import.
func LinesRead(n int) string { return "Reading the file: " + Count(n, "line", "lines") }

// progressStep is the least time between two rewrites of the line.
const progressStep = 100 * time.Millisecond

func progressOn(w io.Writer, now func() time.Time, text func(n int) string) (report func(n int), end func()) {
	next, shown := now().Add(progressStep), false
	report = func(n int) {
		if t := now(); t.After(next) {
			next, shown = t.Add(progressStep), true
			fmt.Fprintf(w, "\r%s …", text(n))
		}
	}
	end = func() {
		if shown {
			fmt.Fprint(w, "\r\x1b[K") // ECMA-48's erase in line
		}
	}
	return report, end
}
