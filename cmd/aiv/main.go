// Command aiv is the whole program: it serves the developer API and administers it.
//
// Each command stands in the table of commands.go and in a file of its own. What a command prints as JSON is declared
// beside it: the domain types know nothing of JSON.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"aiv/store/private"
)

func main() {
	leaveNoCore()
	private.SuperviseIfAsked()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends a program that does not heed the first
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run carries out a command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr, terminal: isTerminal(stdout), getenv: os.Getenv}
	return p.run(ctx, args)
}

// A program is what a command has of the world.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	terminal       bool // somebody reads stdout
	getenv         func(string) string
}

// Exit codes. A command line that was understood and refused has failed.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func (p *program) run(ctx context.Context, args []string) int {
	err := p.dispatch(ctx, args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if usage, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprint(p.stderr, redact(usage.Error()))
		return exitUsage
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(p.stderr, "aiv: %s\n", redact(err.Error()))
	return exitFailed
}

// A usageError means that the command line could not be understood.
type usageError struct {
	fault string
	help  string // the command line that prints the help, or, without a fault, the help itself
}

func (e *usageError) Error() string {
	if e.fault == "" {
		return e.help
	}
	return fmt.Sprintf("aiv: %s\nRun `%s` for help.\n", e.fault, e.help)
}

// What is typed in the wrong place comes back in a message, and messages end up in logs.
var (
	rawKey      = regexp.MustCompile(`(aiv_live_[0-9A-Za-z]{8})[0-9A-Za-z]+`)
	urlPassword = regexp.MustCompile(`(://[^\s/:@]*:)[^\s]*@`)
	dsnPassword = regexp.MustCompile(`(?i)(password=)('[^']*'|[^\s&'"]+)`)
)

// redact takes keys and passwords out of a message.
func redact(message string) string {
	message = rawKey.ReplaceAllString(message, "${1}…")
	message = urlPassword.ReplaceAllString(message, "${1}…@")
	return dsnPassword.ReplaceAllString(message, "${1}…")
}
