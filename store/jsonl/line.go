package jsonl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Line is one JSON object of a file. The functions that read its members record an error on it where a member is
// missing or has another type or form.
type Line struct {
	Number  int // from 1
	members map[string]json.RawMessage
	read    []string
	errs    []string
}

const (
	maxLine     = 1 << 20 // bytes
	maxBadLines = 20      // Read stops after these
)

// Read calls each for every line that is not blank, and returns an error that lists the invalid lines by number. A line is
// invalid if it is not one JSON object, has a member twice or a member that each did not read, or if each recorded an
// error. After 20 invalid lines Read stops, and the error reports that.
func Read(r io.Reader, each func(*Line)) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 64<<10), maxLine)
	var errs []error
	number := 0
	for scanner.Scan() {
		number++
		if len(errs) == maxBadLines {
			return errors.Join(append(errs, fmt.Errorf("line %d and those after it were not read", number))...)
		}
		text := bytes.TrimSpace(scanner.Bytes())
		if len(text) == 0 {
			continue
		}
		l := &Line{Number: number}
		if err := l.parse(text); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
			continue
		}
		each(l)
		if err := l.end(); err != nil {
			errs = append(errs, err)
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		errs = append(errs, fmt.Errorf("line %d: longer than %d bytes", number+1, maxLine))
	} else if err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (l *Line) parse(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	if containsNUL(text) {
		return errors.New(`\u0000 cannot be stored`)
	}
	if hasLoneSurrogate(text) {
		return errors.New("a \\u escape of half a surrogate pair")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	l.members = make(map[string]json.RawMessage)
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return notJSON(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notJSON(err)
		}
		if _, ok := l.members[name.(string)]; ok {
			return fmt.Errorf("duplicate member %q", name)
		}
		l.members[name.(string)] = value
	}
	if _, err := d.Token(); err != nil {
		return notJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text after the object")
	}
	return nil
}

// containsNUL reports whether text contains the escape \u0000. After an escaped backslash the same characters are no escape.
func containsNUL(text []byte) bool {
	nul := []byte(`\u0000`)
	return bytes.Contains(text, nul) && bytes.Contains(bytes.ReplaceAll(text, []byte(`\\`), []byte(" ")), nul)
}

// hasLoneSurrogate reports whether text escapes half a surrogate pair, which encoding/json would replace.
func hasLoneSurrogate(text []byte) bool {
	high := false // the escape before was the first half
	for len(text) > 0 {
		half := rune(0)
		n := 1
		if text[0] == '\\' && len(text) > 1 {
			n = 2
			if text[1] == 'u' && len(text) >= 6 {
				v, _ := strconv.ParseUint(string(text[2:6]), 16, 16) // what is not hexadecimal is not JSON
				half, n = rune(v), 6
			}
		}
		low := half >= 0xdc00 && half < 0xe000
		if low != high {
			return true
		}
		high = half >= 0xd800 && half < 0xdc00
		text = text[n:]
	}
	return high
}

func notJSON(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errors.New("not JSON: the line ends before the object does")
	}
	return fmt.Errorf("not JSON: %w", err)
}

func (l *Line) end() error {
	var unknown []string
	for name := range l.members {
		if !slices.Contains(l.read, name) {
			unknown = append(unknown, fmt.Sprintf("unknown member %q", name))
		}
	}
	slices.Sort(unknown)
	if errs := append(l.errs, unknown...); len(errs) > 0 {
		return fmt.Errorf("line %d: %s", l.Number, strings.Join(errs, "; "))
	}
	return nil
}

// Errorf records an error of the line.
func (l *Line) Errorf(format string, args ...any) {
	l.errs = append(l.errs, fmt.Sprintf(format, args...))
}

// Has reports whether the line has the member. Optional members are read only then.
func (l *Line) Has(name string) bool { _, ok := l.members[name]; return ok }

// SkipRest accepts all other members. It is used where an error of the line makes errors of its other members useless.
func (l *Line) SkipRest() {
	for name := range l.members {
		l.read = append(l.read, name)
	}
}

// Field reads a required member of type T, which may be null only if T is a [Null].
func Field[T any](l *Line, name string) (v T) {
	l.read = append(l.read, name)
	raw, ok := l.members[name]
	if !ok {
		l.Errorf("missing member %q", name)
		return v
	}
	_, nullable := any(v).(interface{ nullable() })
	if string(raw) == "null" && !nullable {
		l.Errorf("%s must not be null", name)
		return v
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		l.Errorf("%s must be %s", name, describe(v))
	}
	return v
}

// Null is a value that may be null; then Valid is false.
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
		return "an RFC 3339 time"
	case Null[time.Time]:
		return "an RFC 3339 time or null"
	}
	return fmt.Sprintf("a %T", v)
}

// OneOf reads a string that must be one of the values.
func OneOf(l *Line, name string, values ...string) string {
	before := len(l.errs)
	v := Field[string](l, name)
	if len(l.errs) == before && !slices.Contains(values, v) {
		l.Errorf("%s must be one of %s", name, strings.Join(values, ", "))
	}
	return v
}

// Text reads a string that is not blank.
func Text(l *Line, name string) string {
	before := len(l.errs)
	v := Field[string](l, name)
	if len(l.errs) == before && strings.TrimSpace(v) == "" {
		l.Errorf("%s must not be empty", name)
	}
	return v
}
