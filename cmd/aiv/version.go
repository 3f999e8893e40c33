package main

import (
	"context"
	"fmt"
	"io"

	"aiv/cmd/aiv/internal/service"
)

// A build is a service.Build as `aiv version` prints it.
type build struct {
	Version     string  `json:"version"`
	Commit      *string `json:"commit"`
	CommittedAt *string `json:"committed_at"`
	Modified    bool    `json:"modified"` // it has uncommitted changes
	Go          string  `json:"go"`
	Platform    string  `json:"platform"`
}

// version needs no database. Binaries that were built without a repository have no commit.
func version(_ context.Context, c *call) error {
	c.JSONFlag()
	if _, err := c.Parse(); err != nil {
		return err
	}
	b := build(service.ThisBuild())
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
