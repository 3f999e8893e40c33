package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A command does something or, when it has commands of its own, is a group of them.
type command struct {
	name     string
	summary  string   // one line
	usage    string   // what follows the name: flags and arguments
	examples []string // whole command lines
	words    []string // that its argument may be, for completion
	run      func(context.Context, *call) error
	commands []command
}

// A call is one command under way. The command declares its flags, parses, and prints.
type call struct {
	*program
	command *command
	name    string // as it is typed: aiv keys create
	args    []string
	flags   *flag.FlagSet
	asJSON  bool
	source  func() (databaseSource, error)

	declared func(*flag.FlagSet) // for completion: called with the flags in place of running the command
}

func (p *program) dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "help":
			args = append(slices.Clone(args[1:]), "-h")
		case "__complete":
			return p.complete(ctx, args[1:])
		case "-version", "--version":
			args = append([]string{"version"}, args[1:]...)
		}
	}
	at, name := &command{name: "aiv", summary: about, commands: commands}, "aiv"
	for at.commands != nil {
		switch {
		case len(args) == 0:
			// Nothing was asked for, so this is no answer: stderr, and not exit 0, for the sake of scripts.
			return &usageError{help: groupHelp(at, name)}
		case isHelp(args[0]):
			_, err := io.WriteString(p.stdout, groupHelp(at, name))
			return err
		case strings.HasPrefix(args[0], "-"):
			return &usageError{fault: "flags follow the command: " + name + " COMMAND -flag", help: name + " -h"}
		}
		next := slices.IndexFunc(at.commands, func(c command) bool { return c.name == args[0] })
		if next < 0 {
			return &usageError{fault: unknownCommand(at, name, args[0]), help: name + " -h"}
		}
		at, name, args = &at.commands[next], name+" "+args[0], args[1:]
	}
	return at.run(ctx, p.call(at, name, args))
}

func (p *program) call(c *command, name string, args []string) *call {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // parse says it in words of ours
	return &call{program: p, command: c, name: name, args: args, flags: flags}
}

func isHelp(arg string) bool {
	return slices.Contains([]string{"-h", "-help", "--h", "--help"}, arg)
}

func unknownCommand(group *command, name, word string) string {
	var names []string
	for _, c := range group.commands {
		names = append(names, c.name)
	}
	if near := nearest(word, names); near != "" {
		return fmt.Sprintf("unknown command %q; did you mean `%s %s`?", word, name, near)
	}
	return fmt.Sprintf("unknown command %q; %s has %s", word, name, strings.Join(names, ", "))
}
