package schedules

import (
	"fmt"
	"path"
	"strings"
	"time"

	_ "time/tzdata" // for machines without the database
)

// LoadZone returns a time zone by its name in IANA's database. It rejects names of files that are not zones, and other
// paths to the file of a zone, such as Europe//Rome, which a machine would not find in the binary's copy.
func LoadZone(name string) (*time.Location, error) {
	switch name {
	case "", "Local", "localtime", "Factory", "posixrules":
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	if path.Clean(name) != name || strings.HasPrefix(name, "posix/") || strings.HasPrefix(name, "right/") {
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	return time.LoadLocation(name)
}
