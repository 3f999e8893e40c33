package main

import (
	"fmt"
	"io"
	"time"
)

// progress returns a function that tells on stderr how many lines an import has read, and one that takes that away again
// before something else is said. Where nobody watches, nothing is told.
func (c *call) progress() (told func(lines int), end func()) {
	if !isTerminal(c.stderr) {
		return nil, func() {}
	}
	return progressOn(c.stderr, time.Now)
}

// progressStep is how often the line is written anew: as often as eyes follow.
const progressStep = 100 * time.Millisecond

func progressOn(w io.Writer, now func() time.Time) (told func(lines int), end func()) {
	next, shown := now().Add(progressStep), false
	told = func(lines int) {
		if t := now(); t.After(next) {
			next, shown = t.Add(progressStep), true
			fmt.Fprintf(w, "\rReading the file: %s …", count(lines, "line", "lines"))
		}
	}
	end = func() {
		if shown {
			fmt.Fprint(w, "\r\x1b[K") // ECMA-48's erase in line
		}
	}
	return told, end
}
