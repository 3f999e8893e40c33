package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// A build identifies the binary by what the go command recorded in it.
type build struct {
	Version     string  `json:"version"`
	Commit      *string `json:"commit"`
	CommittedAt *string `json:"committed_at"`
	Modified    bool    `json:"modified"` // it has uncommitted changes
	Go          string  `json:"go"`
	Platform    string  `json:"platform"`
}

func version(_ context.Context, c *call) error {
	c.JSONFlag()
	if _, err := c.Parse(); err != nil {
		return err
	}
	b := thisBuild()
	return c.Print(b, func(w io.Writer) {
		fmt.Fprintf(w, "aiv %s", b.Version)
		if b.Commit != nil {
			fmt.Fprintf(w, ", commit %s", *b.Commit)
		}
		if b.CommittedAt != nil {
			fmt.Fprintf(w, " of %s", *b.CommittedAt)
		}
		if b.Modified {
			fmt.Fprint(w, ", modified")
		}
		fmt.Fprintf(w, ", %s %s\n", b.Go, b.Platform)
	})
}

func thisBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
