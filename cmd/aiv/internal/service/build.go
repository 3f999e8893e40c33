package service

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// A Build identifies the binary by what the go command recorded in it.
type Build struct {
	Version     string
	Commit      *string
	CommittedAt *string
	Modified    bool // it has uncommitted changes
	Go          string
	Platform    string
}

// ThisBuild returns the build of this binary.
func ThisBuild() Build {
	b := Build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	written, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = cmp.Or(written.Main.Version, b.Version)
	for _, s := range written.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = &s.Value
		case "vcs.time":
			b.CommittedAt = &s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
