package schedules

import (
	"fmt"
	"path"
	"strings"
	"time"

	_ "time/tzdata" // for machines without the database
)

// LoadZone returns a time zone by its name in IANA's database. It refuses names of files that are no zones, and other
// paths to the file of a zone, such as Europe//Rome: a machine without these files would not find them in the binary.
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
