package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Line is one JSON object of a JSON Lines file that an operator imports. Its members are read by name, each with the
// type that it must have; every fault is kept, so that one pass tells all that is wrong with the file.
type Line struct {
	Number  int // from 1
	members map[string]json.RawMessage
	read    []string
	faults  []string
}

// maxLine is the longest line, in bytes.
const maxLine = 1 << 20

// maxFaults is how many faulty lines an import tells before it stops reading.
const maxFaults = 20

// ReadLines calls each for every line of a JSON Lines file, and returns an error that lists the faulty ones by number.
// Empty lines are passed over. A member that nobody read, one that stands twice and one that is missing are faults. Where
// faults are many, the rest of the file is not read, and the error says so.
func ReadLines(r io.Reader, each func(*Line)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), maxLine)
	var faults []error
	number := 0
	for scanner.Scan() {
		number++
		if len(faults) == maxFaults {
			return errors.Join(append(faults, fmt.Errorf("line %d and those after it were not read", number))...)
		}
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		l := &Line{Number: number}
		if err := l.parse(text); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		each(l)
		if err := l.end(); err != nil {
			faults = append(faults, err)
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		faults = append(faults, fmt.Errorf("line %d: longer than %d bytes", number+1, maxLine))
	} else if err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func (l *Line) parse(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	if holdsNUL(text) {
		return errors.New(`\u0000 can't be stored`)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	l.members = make(map[string]json.RawMessage)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
		if _, ok := l.members[name.(string)]; ok {
			return fmt.Errorf("member %q stands twice", name)
		}
		l.members[name.(string)] = value
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	return nil
}

// holdsNUL tells whether a string of the text has \u0000 in it: behind an escaped backslash, that is no escape.
func holdsNUL(text []byte) bool {
	nul := []byte(`\u0000`)
	return bytes.Contains(text, nul) && bytes.Contains(bytes.ReplaceAll(text, []byte(`\\`), []byte(" ")), nul)
}

func (l *Line) end() error {
	var unknown []string
	for name := range l.members {
		if !slices.Contains(l.read, name) {
			unknown = append(unknown, fmt.Sprintf("unknown member %q", name))
		}
	}
	slices.Sort(unknown)
	if faults := append(l.faults, unknown...); len(faults) > 0 {
		return fmt.Errorf("line %d: %s", l.Number, strings.Join(faults, "; "))
	}
	return nil
}

// Fault adds a fault of the line.
func (l *Line) Fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// Has tells whether the member is there; a member that may be left out is asked for so.
func (l *Line) Has(name string) bool { _, ok := l.members[name]; return ok }

// SkipRest accepts whatever else the line holds; used where its kind is unknown and says so already.
func (l *Line) SkipRest() {
	for name := range l.members {
		l.read = append(l.read, name)
	}
}

// Field reads a member that must be there and be of type T. A *T may be null; a T may not.
func Field[T any](l *Line, name string) (v T) {
	l.read = append(l.read, name)
	raw, ok := l.members[name]
	if !ok {
		l.Fault("member %q is missing", name)
		return v
	}
	_, nullable := any(v).(interface{ nullable() })
	if string(raw) == "null" && !nullable {
		l.Fault("%s must not be null", name)
		return v
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		l.Fault("%s must be %s", name, describe(v))
	}
	return v
}

// Null is a value that may be null, in which case Valid is false.
type Null[T any] struct {
	V     T
	Valid bool
}

func (Null[T]) nullable() {}

// UnmarshalJSON reads the value or null.
func (n *Null[T]) UnmarshalJSON(b []byte) error {
	n.Valid = string(b) != "null"
	if !n.Valid {
		return nil
	}
	return json.Unmarshal(b, &n.V)
}

// Ptr returns nil for null.
func (n Null[T]) Ptr() *T {
	if !n.Valid {
		return nil
	}
	return &n.V
}

func describe(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case Null[string]:
		return "a string or null"
	case []string:
		return "an array of strings"
	case Null[[]string]:
		return "an array of strings or null"
	case bool:
		return "true or false"
	case int:
		return "an integer"
	case Null[float64]:
		return "a number or null"
	case time.Time:
		return "a time of RFC 3339"
	case Null[time.Time]:
		return "a time of RFC 3339 or null"
	}
	return fmt.Sprintf("a %T", v)
}

// Word reads a member that must be one of the words.
func Word(l *Line, name string, words ...string) string {
	before := len(l.faults)
	v := Field[string](l, name)
	if len(l.faults) == before && !slices.Contains(words, v) {
		l.Fault("%s must be one of %s", name, strings.Join(words, ", "))
	}
	return v
}

// Text reads a member that must be a string and not be empty.
func Text(l *Line, name string) string {
	before := len(l.faults)
	v := Field[string](l, name)
	if len(l.faults) == before && strings.TrimSpace(v) == "" {
		l.Fault("%s must not be empty", name)
	}
	return v
}
