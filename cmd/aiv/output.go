package main

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

// jsonFlag declares -json, which every command that prints has.
func (c *call) jsonFlag() {
	c.flags.BoolVar(&c.asJSON, "json", false, "print JSON: one object or, for a list, one array")
}

// print writes v as JSON when that was asked for, and otherwise what text writes, in which a tab ends a cell of a table. On a
// terminal the columns are aligned; elsewhere the tabs stay, for cut and awk. There is no colour, so NO_COLOR is honoured.
func (c *call) print(v any, text func(w io.Writer)) error {
	var b bytes.Buffer
	if c.asJSON {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return err
		}
	} else if !c.terminal {
		text(&b)
	} else {
		w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
		text(w)
		w.Flush()
	}
	if _, err := b.WriteTo(c.stdout); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// row writes a row of a table. A cell can't leave its place, or tell the terminal what to do.
func row(w io.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return unicode.ReplacementChar
			}
			return r
		}, cell)
	}
	fmt.Fprintln(w, strings.Join(cells, "\t"))
}

// orNone is a list of words as people read it.
func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ",")
}

// wireTime is a time as scripts read it. The digits are always six, so that the texts sort as the times do.
func wireTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

func wireTimeOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := wireTime(*t)
	return &text
}

// humanTime is a time as people read it.
func humanTime(t *time.Time, absent string) string {
	if t == nil {
		return absent
	}
	return t.UTC().Format(time.RFC3339)
}

// isTerminal tells whether somebody reads w. The null device is a character device like a terminal, but nobody does.
func isTerminal(w io.Writer) bool {
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
