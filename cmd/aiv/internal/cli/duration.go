package cli

import (
	"strconv"
	"strings"
	"time"
)

// ParseDuration is time.ParseDuration that also accepts days, such as 400d.
func ParseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}
