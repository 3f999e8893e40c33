package schedules

import (
	"fmt"
	"strings"
	"time"

	_ "time/tzdata" // for machines without the database
)

// LoadZone returns a time zone by its name in IANA's database. It refuses names of files that are no zones.
func LoadZone(name string) (*time.Location, error) {
	switch name {
	case "", "Local", "localtime", "Factory", "posixrules":
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	if strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	return time.LoadLocation(name)
}
