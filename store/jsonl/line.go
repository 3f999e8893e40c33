package jsonl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"aiv/store/strictjson"
)

// A Line is one JSON object of a file. The functions that read its members record an error on it where a member is
// missing or has another type or form.
type Line struct {
	Number  int // from 1
	object  strictjson.Value
	read    []string // names of members
	skipped bool     // the other members
	errs    []string
}

const (
	maxLine     = 1 << 20 // bytes
	maxBadLines = 20      // Read stops after these
)

// limits do not bound the number of values further: maxLine does.
var limits = strictjson.Limits{Depth: 16, Values: maxLine}

// Read calls each for every line that is not blank, and returns an error that lists the invalid lines by number. A line
// is invalid if it is not one object of strict JSON, has a member that each did not read, or if each recorded an error.
// After 20 invalid lines Read stops, and the error reports that. If r fails, its error is returned alone. progress,
// which may be nil, is called with the number of lines read so far.
func Read(r io.Reader, progress func(lines int), each func(*Line)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), maxLine+1) // and the newline
	var errs []error
	number := 0
	for scanner.Scan() {
		number++
		if len(errs) == maxBadLines {
			return errors.Join(append(errs, fmt.Errorf("line %d and those after it were not read", number))...)
		}
		text := scanner.Text()
		if strings.TrimSpace(text) == "" {
			continue
		}
		l := &Line{Number: number}
		if err := l.parse(text); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		// Only lines that could be parsed are reported.
		if progress != nil {
			progress(number)
		}
		each(l)
		if err := l.end(); err != nil {
			errs = append(errs, err)
		}
	}
	// The scanner stops at such a line, so the lines after it are not read.
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		errs = append(errs, fmt.Errorf("line %d: longer than %d bytes", number+1, maxLine))
	} else if err != nil {
		return err // the last line may be a part of one
	}
	return errors.Join(errs...)
}

// parse reads the text of the line as one JSON object.
func (l *Line) parse(text string) (err error) {
	if l.object, err = strictjson.Parse(text, limits); err != nil {
		return err
	}
	if l.object.Kind != strictjson.KindObject {
		return errors.New("not a JSON object")
	}
	return nil
}

// end returns the errors of the line, also for members that were not read.
func (l *Line) end() error {
	for _, m := range l.object.Members {
		if !l.skipped && !slices.Contains(l.read, m.Name) {
			l.Errorf("unknown member %q", m.Name)
		}
	}
	if len(l.errs) > 0 {
		return fmt.Errorf("line %d: %s", l.Number, strings.Join(l.errs, "; "))
	}
	return nil
}

// Errorf records an error of the line.
func (l *Line) Errorf(format string, args ...any) {
	l.errs = append(l.errs, fmt.Sprintf(format, args...))
}

// Has reports whether the line has the member. Optional members are read only then.
func (l *Line) Has(name string) bool { return l.object.Member(name) != nil }

// SkipRest accepts all other members. It is used where an error of the line makes errors of its other members useless.
func (l *Line) SkipRest() { l.skipped = true }

// member returns a required member, or nil.
func (l *Line) member(name string) *strictjson.Value {
	l.read = append(l.read, name)
	v := l.object.Member(name)
	if v == nil {
		l.Errorf("missing member %q", name)
	}
	return v
}
