package main

import (
	"cmp"
	"os"
	"os/user"
	"strconv"
)

// actorFlag declares -actor of a command that changes something. The function returned tells, once the flags are
// parsed, who the audit log says made the change.
func (c *call) actorFlag() func() string {
	actor := c.Flags.String("actor", "", "`WHO` makes the change, for the audit log (environment: AIV_ACTOR; default: USER@HOST)")
	return func() string { return cmp.Or(*actor, c.Getenv("AIV_ACTOR"), c.thisUser()) }
}

// thisUser is the person at the keyboard as far as the machine knows: behind sudo, not root.
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
