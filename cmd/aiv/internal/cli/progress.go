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

// progressStep is how often the line is rewritten at most.
const progressStep = 100 * time.Millisecond

func progressOn(w io.Writer, now func() time.Time) (report func(lines int), end func()) {
	next, shown := now().Add(progressStep), false
	report = func(lines int) {
		if t := now(); t.After(next) {
			next, shown = t.Add(progressStep), true
			fmt.Fprintf(w, "\rReading the file: %s …", Count(lines, "line", "lines"))
		}
	}
	end = func() {
		if shown {
			fmt.Fprint(w, "\r\x1b[K") // ECMA-48's erase in line
		}
	}
	return report, end
}
