package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

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
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
