package main

import (
	"cmp"
	"os"
	"os/user"
	"strconv"
)

// actorFlag declares -actor of a command that changes something. After the flags are parsed, the function returned returns
// the actor that the audit log records.
func (c *call) actorFlag() func() string {
	actor := c.Flags.String("actor", "", "the `NAME` that the audit log records for the change (environment: AIV_ACTOR; default: USER@HOST)")
	return func() string { return cmp.Or(*actor, c.Getenv("AIV_ACTOR"), c.thisUser()) }
}

// thisUser returns USER@HOST, with the user who called sudo instead of root.
func (c *call) thisUser() string {
	name := c.Getenv("SUDO_USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		} else {
			name = "uid " + strconv.Itoa(os.Getuid())
		}
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
