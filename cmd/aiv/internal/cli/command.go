// Package cli runs a tree of commands: flags and arguments in any order, help, suggestions for mistyped words, shell
// completion, tables, JSON output and exit codes. It knows nothing of what the commands do.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Command has a Run function or, when it is a group, Commands.
type Command struct {
	Name      string
	Summary   string   // one line without a full stop
	Usage     string   // the flags and arguments, as in the help
	Examples  []string // complete command lines
	Notes     string   // the end of the help
	Arguments []string // the values that its argument may have, for completion
	Run       func(context.Context, *Call) error
	Commands  []Command
}

// A Program is a command line program and its environment.
type Program struct {
	Name     string
	Summary  string
	Notes    string // the end of the program's help
	Commands []Command

	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Stdout is a terminal
	Getenv         func(string) string
	Redact         func(string) string // removes secrets from an error message; nil: there are none
}

// A Call is one invocation of a command. The command declares its flags, calls Parse, and prints.
type Call struct {
	*Program
	Command *Command
	Name    string // as typed: aiv keys create
	Flags   *flag.FlagSet

	args     []string
	asJSON   bool
	fault    string              // of the value of a FuncFlag
	declared func(*flag.FlagSet) // for completion: called instead of running the command
}

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2 // the command line could not be understood
)

// Run runs a command line, without the program's name, and returns the exit code.
func (p *Program) Run(ctx context.Context, args []string) int {
	err := p.dispatch(ctx, args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return ExitOK
	}
	if usage, ok := errors.AsType[*UsageError](err); ok {
		p.report(p.redact(usage.text(p.Name)))
		return ExitUsage
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	p.report(fmt.Sprintf("%s: %s\n", p.Name, p.redact(err.Error())))
	return ExitFailed
}

// reportTimeout bounds how long the program waits for stderr when it ends: a full pipe that is not read must not keep
// it.
const reportTimeout = time.Second

// report writes the program's last message to stderr. The message may have lines, and parts that a server sent.
func (p *Program) report(message string) {
	message = strings.Map(func(r rune) rune {
		if r == '\n' {
			return r
		}
		return harmless(r)
	}, message)
	written := make(chan struct{})
	go func() {
		defer close(written)
		io.WriteString(p.Stderr, message)
	}()
	select {
	case <-written:
	case <-time.After(reportTimeout):
	}
}

// redact removes secrets from an error message by p.Redact, if that is set.
func (p *Program) redact(message string) string {
	if p.Redact == nil {
		return message
	}
	return p.Redact(message)
}

// A UsageError reports a command line that could not be understood.
type UsageError struct {
	Fault string
	Help  string // the command line that prints the help or, without a fault, the help itself
}

func (e *UsageError) Error() string { return e.Fault }

// text returns the whole message for stderr.
func (e *UsageError) text(program string) string {
	if e.Fault == "" {
		return e.Help
	}
	return fmt.Sprintf("%s: %s\nRun `%s` for help.\n", program, e.Fault, e.Help)
}

// dispatch finds the command that the first words name, and runs it.
func (p *Program) dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "help":
			// "help keys create" means "keys create -h".
			args = append(slices.Clone(args[1:]), "-h")
		// Only completion scripts use it, so it is in no help.
		case "__complete":
			return p.complete(ctx, args[1:])
		case "-version", "--version":
			args = append([]string{"version"}, args[1:]...)
		}
	}
	at, name := p.root(), p.Name
	for at.Commands != nil {
		switch {
		case len(args) == 0:
			// The help was not asked for: it goes to stderr and the exit code is not 0, so that scripts notice.
			return &UsageError{Help: p.groupHelp(at, name)}
		case isHelp(args[0]):
			_, err := io.WriteString(p.Stdout, p.groupHelp(at, name))
			return err
		case strings.HasPrefix(args[0], "-"):
			return &UsageError{Fault: "flags follow the command: " + name + " COMMAND -flag", Help: name + " -h"}
		}
		next := at.find(args[0])
		if next == nil {
			return &UsageError{Fault: unknownCommand(at, name, args[0]), Help: name + " -h"}
		}
		at, name, args = next, name+" "+args[0], args[1:]
	}
	return at.Run(ctx, p.call(at, name, args))
}

// root returns the program as the group of its commands.
func (p *Program) root() *Command {
	return &Command{Name: p.Name, Summary: p.Summary, Commands: p.Commands}
}

// call returns a Call for a command, which has yet to declare its flags.
func (p *Program) call(c *Command, name string, args []string) *Call {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Parse reports errors itself
	return &Call{Program: p, Command: c, Name: name, args: args, Flags: flags}
}

// find returns a command of the group by its name, or nil.
func (c *Command) find(name string) *Command {
	i := slices.IndexFunc(c.Commands, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Commands[i]
}

func isHelp(arg string) bool {
	return slices.Contains([]string{"-h", "-help", "--h", "--help"}, arg)
}

// unknownCommand describes a word that is no command, with the nearest one if there is one, else with all.
func unknownCommand(group *Command, name, word string) string {
	var names []string
	for _, c := range group.Commands {
		names = append(names, c.Name)
	}
	if near := nearest(word, names); near != "" {
		return fmt.Sprintf("unknown command %q; did you mean `%s %s`?", word, name, near)
	}
	return fmt.Sprintf("unknown command %q; the commands of %s are %s", word, name, strings.Join(names, ", "))
}
