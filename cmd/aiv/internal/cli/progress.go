package cli

import (
	"fmt"
	"io"
	"time"
)

// Progress returns a function that shows on stderr how many lines an import has read, and one that erases that line
// before other output. Without a terminal on stderr, report is nil and end does nothing.
func (c *Call) Progress() (report func(lines int), end func()) {
	if !IsTerminal(c.Stderr) {
		return nil, func() {}
	}
	return progressOn(c.Stderr, time.Now)
}

// ProgressOf is Progress of a command that counts something other than lines. text describes n of it.
func (c *Call) ProgressOf(text func(n int) string) (report func(n int), end func()) {
	if !IsTerminal(c.Stderr) {
		return func(int) {}, func() {}
	}
	return progressOf(c.Stderr, time.Now, text)
}

// progressStep is how often the line is rewritten at most.
const progressStep = 100 * time.Millisecond

func progressOn(w io.Writer, now func() time.Time) (report func(lines int), end func()) {
	return progressOf(w, now, func(lines int) string { return "Reading the file: " + Count(lines, "line", "lines") })
}

func progressOf(w io.Writer, now func() time.Time, text func(n int) string) (report func(n int), end func()) {
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
