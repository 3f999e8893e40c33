package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/auth"
	"aiv/store"
)

// rateFlag declares -rate. It leaves *to nil when the flag is not given; without says which rate applies then.
func (c *call) rateFlag(to **int, whose, without string) {
	usage := fmt.Sprintf("`N` requests per minute%s, from 1 to %d (default: %s)", whose, auth.MaxRateLimit, without)
	c.Flags.Func("rate", usage, func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > auth.MaxRateLimit {
			return fmt.Errorf("must be a number of requests per minute from 1 to %d", auth.MaxRateLimit)
		}
		*to = &n
		return nil
	})
}

// expiryFlag reads "never" as the zero time. It leaves *to nil when the flag is not given.
func (c *call) expiryFlag(to **time.Time, usage string) {
	c.Flags.Func("expires", usage, func(v string) error {
		if v == "never" {
			*to = &time.Time{}
			return nil
		}
		t, err := store.ParseTime(v)
		// The zero time is refused, because it would mean never.
		if err != nil || t.IsZero() {
			return errors.New("must be an RFC 3339 time, such as 2031-01-31T00:00:00Z, or never")
		}
		*to = &t
		return nil
	})
}

// actor returns the actor that the audit log records. The environment may have bytes that are not UTF-8, which the
// database refuses; Parse checks the flag.
func (c *call) actor() string {
	return strings.ToValidUTF8(cmp.Or(*c.givenActor, c.Getenv("AIV_ACTOR"), c.thisUser()), "\uFFFD")
}

// thisUser returns USER@HOST, with the user who called sudo instead of root.
func (c *call) thisUser() string {
	name := c.Getenv("SUDO_USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		} else {
			// The user may have no entry in the user database, as in a container.
			name = "uid " + strconv.Itoa(os.Getuid())
		}
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// idFlag declares a flag whose value is an id. It leaves *to nil when the flag is not given.
func (c *call) idFlag(to **store.ID, name, prefix, usage string) {
	// FuncFlag does not repeat the value in its error: it may be a key that was given in place of an id.
	c.FuncFlag(name, usage, func(v string) error {
		id, err := parseID(prefix, v)
		if err != nil {
			return err
		}
		*to = &id
		return nil
	})
}

// maxListed is the greatest -limit.
const maxListed = 10_000

// listLimitFlag declares -limit of a list.
func (c *call) listLimitFlag(to *int, value int, what string) {
	// A FuncFlag has no default, so it is set here.
	*to = value
	usage := fmt.Sprintf("list at most this `NUMBER` of %s, from 1 to %d (default: %d)", what, maxListed, value)
	c.FuncFlag("limit", usage, func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxListed {
			return fmt.Errorf("must be a whole number from 1 to %d", maxListed)
		}
		*to = n
		return nil
	})
}

// firstOf returns the first limit elements. Callers read one element more; if there is one, firstOf reports that on
// stderr.
func firstOf[T any](c *call, found []T, limit int, what string) []T {
	if len(found) <= limit {
		return found
	}
	fmt.Fprintf(c.Stderr, "The list ends at -limit %d; more %s follow.\n", limit, what)
	return found[:limit]
}

// readSecret returns the content of the file that a flag names, without the white space around it.
func readSecret(flag, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// known refuses an empty list, and words that are not among those allowed.
func (c *call) known(flag string, words, allowed []string) error {
	// A nil list means that the flag was not given.
	if words != nil && len(words) == 0 {
		return c.Wrong("%s is empty", flag)
	}
	for _, word := range words {
		if !slices.Contains(allowed, word) {
			return c.Wrong("%s must be one of %s, not %q", flag, strings.Join(allowed, ", "), word)
		}
	}
	return nil
}

// parseWithID parses a command line whose first argument is an id, which it also returns.
func (c *call) parseWithID(prefix string, more ...string) (id store.ID, args []string, err error) {
	if args, err = c.Parse(append([]string{"ID"}, more...)...); err != nil {
		return id, nil, err
	}
	if id, err = parseID(prefix, args[0]); err != nil {
		err = c.Wrong("ID %v", err)
	}
	return id, args, err
}

// parseID reads an id. Its error does not repeat the text, which may be a key.
func parseID(prefix, text string) (store.ID, error) {
	id, err := store.ParseID(prefix, text)
	if err != nil {
		kind := kinds[prefix]
		return id, fmt.Errorf("must be %s's id, %s_ and 26 characters; see aiv %s list", kind.name, prefix, kind.group)
	}
	return id, nil
}

// kinds are what the ids of each prefix identify, and the group of commands that lists it. It has only the prefixes of
// ids that commands take.
var kinds = map[string]struct{ name, group string }{
	"acct": {"an account", "accounts"},
	"cred": {"a credential", "keys"},
	"run":  {"a run", "runs"},
	"wh":   {"a webhook", "webhooks"},
	"wrk":  {"a worker", "workers"},

	"sched": {"a schedule", "schedules"},
}

// humanTime formats a time for people. A nil time is shown as absent.
func humanTime(t *time.Time, absent string) string {
	if t == nil {
		return absent
	}
	return t.UTC().Format(time.RFC3339)
}

// numberText formats a number for people. A nil number is shown as absent.
func numberText[T int | int64](n *T, absent string) string {
	if n == nil {
		return absent
	}
	return strconv.FormatInt(int64(*n), 10)
}
