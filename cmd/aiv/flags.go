package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/store"
)

// parse reads the command line, after the command has declared its flags. needs names what it must have: "ID" is an
// argument, "-name" a flag. The arguments, which are these and no more, are returned in their order.
func (c *call) parse(needs ...string) ([]string, error) {
	if c.declared != nil {
		c.declared(c.flags)
		return nil, flag.ErrHelp
	}
	args, err := parseMixed(c.flags, c.args)
	if errors.Is(err, flag.ErrHelp) {
		if _, err := io.WriteString(c.stdout, c.help()); err != nil {
			return nil, err
		}
		return nil, flag.ErrHelp
	}
	if err != nil {
		return nil, c.wrong("%s", c.flagFault(err))
	}
	var missing []string
	wanted := 0
	for _, need := range needs {
		name, isFlag := strings.CutPrefix(need, "-")
		if !isFlag {
			wanted++
		}
		if isFlag && !c.given(name) || !isFlag && len(args) < wanted {
			missing = append(missing, need)
		}
	}
	if len(missing) > 0 {
		return nil, c.wrong("%s needs %s", c.name, strings.Join(missing, " and "))
	}
	if len(args) > wanted {
		return nil, c.wrong("%q is one argument too many for %s", args[wanted], c.name)
	}
	return args, nil
}

// parseMixed is FlagSet.Parse for a command line whose flags and arguments stand in any order. After "--" there are only
// arguments.
func parseMixed(flags *flag.FlagSet, args []string) (arguments []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return arguments, nil
		}
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(arguments, rest...), nil
		}
		arguments, args = append(arguments, rest[0]), rest[1:]
	}
}

// wrong is the error of a command line that can't be understood.
func (c *call) wrong(format string, args ...any) error {
	return &usageError{fault: fmt.Sprintf(format, args...), help: c.name + " -h"}
}

func (c *call) flagFault(err error) string {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		var names []string
		c.flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		if near := nearest(name, names); near != "" {
			return fmt.Sprintf("unknown flag -%s; did you mean -%s?", name, near)
		}
		return fmt.Sprintf("%s has no flag -%s", c.name, name)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: "); ok {
		return "flag " + name + " needs a value"
	}
	return text
}

func (c *call) given(name string) (found bool) {
	c.flags.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// Flags that may be left out, which is not the same as empty: nil is left out.

func (c *call) textFlag(to **string, name, usage string) {
	c.flags.Func(name, usage, func(v string) error { *to = &v; return nil })
}

// listFlag is a comma list; "" is the empty one.
func (c *call) listFlag(to *[]string, name, usage string) {
	c.flags.Func(name, usage, func(v string) error {
		list := []string{}
		if v != "" {
			list = strings.Split(v, ",")
		}
		for i := range list {
			list[i] = strings.TrimSpace(list[i])
		}
		if slices.Contains(list, "") {
			return errors.New("a word is missing before or after a comma")
		}
		*to = list
		return nil
	})
}

func (c *call) rateFlag(to **int, usage string) {
	c.flags.Func("rate", usage, func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return errors.New("want a whole number of requests per minute")
		}
		*to = &n
		return nil
	})
}

// expiryFlag reads "never" as the zero time.
func (c *call) expiryFlag(to **time.Time, usage string) {
	c.flags.Func("expires", usage, func(v string) error {
		if v == "never" {
			*to = &time.Time{}
			return nil
		}
		t, err := time.Parse(time.RFC3339, v)
		if err != nil || t.IsZero() {
			return errors.New("want a time of RFC 3339, such as 2031-01-31T00:00:00Z, or never")
		}
		*to = &t
		return nil
	})
}

// credentialID and accountID don't repeat what they can't read: it may be the key itself.

func (c *call) credentialID(text string) (store.ID, error) {
	id, err := store.ParseID("cred", text)
	if err != nil {
		return id, c.wrong("ID must be a credential's id, cred_ and 26 characters; see aiv keys list")
	}
	return id, nil
}

func (c *call) accountID(place, text string) (store.ID, error) {
	id, err := store.ParseID("acct", text)
	if err != nil {
		return id, c.wrong("%s must be an account's id, acct_ and 26 characters; see aiv accounts list", place)
	}
	return id, nil
}
