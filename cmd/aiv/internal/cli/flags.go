package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Parse reads the command line after the command has declared its flags. required names what must be given: "ID" is an
// argument, "COMMAND..." one or more, "-name" a flag. "[COMMAND...]" alone allows any number. Parse returns the
// arguments in the order of required; more are refused.
func (c *Call) Parse(required ...string) ([]string, error) {
	// For completion, ErrHelp ends the command before it does anything.
	if c.declared != nil {
		c.declared(c.Flags)
		return nil, flag.ErrHelp
	}
	args, err := parseMixed(c.Flags, c.args)
	// The help goes to stdout, because it was asked for.
	if errors.Is(err, flag.ErrHelp) {
		if _, err := io.WriteString(c.Stdout, c.help()); err != nil {
			return nil, err
		}
		return nil, flag.ErrHelp
	}
	if err != nil {
		return nil, c.Wrong("%s", c.flagFault(err))
	}
	if name := emptyFlag(c.Flags); name != "" {
		return nil, c.Wrong("-%s is empty", name)
	}
	if name := unreadableFlag(c.Flags); name != "" {
		return nil, c.Wrong("-%s is not valid UTF-8", name)
	}
	if slices.Equal(required, []string{"[COMMAND...]"}) {
		return args, nil
	}
	wanted, more, err := c.Require(args, required...)
	if err != nil {
		return nil, err
	}
	// An unset variable of a shell, in quotes, is an empty argument.
	if i := slices.Index(args[:wanted], ""); i >= 0 {
		return nil, c.Wrong("argument %d of %s is empty", i+1, c.Name)
	}
	if len(args) > wanted && !more {
		return nil, c.Wrong("unexpected argument %q for %s", args[wanted], c.Name)
	}
	return args, nil
}

// Require returns an error unless what is named, as for Parse, is given, how many arguments that are, and whether more
// may follow.
func (c *Call) Require(args []string, required ...string) (wanted int, more bool, err error) {
	var missing []string
	for _, r := range required {
		name, isFlag := strings.CutPrefix(r, "-")
		more = more || strings.HasSuffix(r, "...")
		if !isFlag {
			wanted++
		}
		if isFlag && !c.Given(name) || !isFlag && len(args) < wanted {
			missing = append(missing, r)
		}
	}
	if len(missing) > 0 {
		return 0, false, c.Wrong("%s requires %s", c.Name, enumerate(missing))
	}
	return wanted, more, nil
}

// emptyFlag returns the name of a flag that was given as "", as an unset variable of a shell is, or as white space.
func emptyFlag(flags *flag.FlagSet) (name string) {
	flags.Visit(func(f *flag.Flag) {
		if v, ok := f.Value.(flag.Getter); ok && name == "" {
			if text, ok := v.Get().(string); ok && strings.TrimSpace(text) == "" {
				name = f.Name
			}
		}
	})
	return name
}

// unreadableFlag returns the name of a flag whose text is not UTF-8, which only the name of a file may be.
func unreadableFlag(flags *flag.FlagSet) (name string) {
	flags.Visit(func(f *flag.Flag) {
		if kind, _ := flag.UnquoteUsage(f); kind != "FILE" && kind != "FOLDER" && !utf8.ValidString(f.Value.String()) {
			name = f.Name
		}
	})
	return name
}

// enumerate returns "a", "a and b" or "a, b and c".
func enumerate(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// parseMixed is FlagSet.Parse for flags and arguments in any order. After "--" there are only arguments.
func parseMixed(flags *flag.FlagSet, args []string) (arguments []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return arguments, nil
		}
		// flags.Parse stops at the first argument or after a --. The word before the rest tells which.
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(arguments, rest...), nil
		}
		arguments, args = append(arguments, rest[0]), rest[1:]
	}
}

// Wrong returns the error of a command line that cannot be understood.
func (c *Call) Wrong(format string, args ...any) error {
	return &UsageError{Fault: fmt.Sprintf(format, args...), Help: c.Name + " -h"}
}

// flagFault describes an error of FlagSet.Parse. It depends on the texts of package flag, which has no types for its
// errors.
func (c *Call) flagFault(err error) string {
	if c.fault != "" {
		return c.fault
	}
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		var names []string
		c.Flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		if near := nearest(name, names); near != "" {
			return fmt.Sprintf("unknown flag -%s; did you mean -%s?", name, near)
		}
		return fmt.Sprintf("%s has no flag -%s", c.Name, name)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return "flag " + name + " requires a value"
	}
	if fault, ok := strings.CutSuffix(text, ": parse error"); ok { // of package flag, which does not say what it expected
		if strings.HasPrefix(fault, "invalid boolean value") {
			return fault + ": must be true or false"
		}
		return fault + ": must be a whole number"
	}
	return text
}

// Given reports whether a flag was set on the command line.
func (c *Call) Given(name string) (found bool) {
	c.Flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// FuncFlag declares a flag whose value set reads. What set returns follows the flag's name in the error message, which
// does not repeat the value, as the message of Flags.Func does: the value may be a secret that was given for another one.
func (c *Call) FuncFlag(name, usage string, set func(string) error) {
	c.Flags.Func(name, usage, func(v string) error {
		err := set(v)
		if strings.TrimSpace(v) == "" {
			err = errors.New("is empty")
		}
		if err != nil {
			c.fault = "-" + name + " " + err.Error()
		}
		return err
	})
}

var errNotUTF8 = errors.New("must be valid UTF-8")

// TextFlag declares a flag that leaves *to nil when it is not given.
func (c *Call) TextFlag(to **string, name, usage string) {
	c.Flags.Func(name, usage, func(v string) error {
		if !utf8.ValidString(v) {
			return errNotUTF8
		}
		*to = &v
		return nil
	})
}

// ListFlag declares a comma-separated list. It leaves *to nil when the flag is not given; "" is the empty list.
func (c *Call) ListFlag(to *[]string, name, usage string) {
	c.Flags.Func(name, usage, func(v string) error {
		list := []string{}
		if v != "" {
			list = strings.Split(v, ",")
		}
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		if slices.Contains(list, "") {
			return errors.New("a list element is empty")
		}
		if !utf8.ValidString(v) {
			return errNotUTF8
		}
		*to = list
		return nil
	})
}

// FormatDuration is d.String without units that are zero at the end: 24h instead of 24h0m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// DurationFlag declares a flag whose value ParseDuration reads.
func (c *Call) DurationFlag(to *time.Duration, name string, value time.Duration, usage string) {
	*to = value
	c.Flags.Var((*duration)(to), name, usage)
}

// A duration is the value of a flag.
type duration time.Duration

// Set implements flag.Value.
func (d *duration) Set(text string) error {
	parsed, err := ParseDuration(text)
	if err != nil {
		return errors.New("must be a duration, such as 400d, 24h, 90m or 30s")
	}
	*d = duration(parsed)
	return nil
}

// String implements flag.Value.
func (d *duration) String() string { return FormatDuration(time.Duration(*d)) }

// ParseDuration is time.ParseDuration that also accepts days, such as 400d.
func ParseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		// 16 bits: 65,535 days are 179 years, and a Duration holds 292.
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
