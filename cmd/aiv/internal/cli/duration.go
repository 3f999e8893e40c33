package cli

import (
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

// ParseDuration is time.ParseDuration that also accepts days, such as 400d.
func ParseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
