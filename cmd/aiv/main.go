// Command aiv serves the developer API and administers it.
//
// The table of commands is in commands.go. A file such as keys.go has a command or a group of commands: it declares the
// flags, calls the package that does the work, and prints the result. It also declares the JSON of the result, because
// the domain types have no JSON tags; the JSON of aiv status is in internal/status. The commands serve and dispatch are
// in services.go; package service wires them. What commands share is in database.go and flags.go.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/database"
	"aiv/cmd/aiv/internal/service"
	"aiv/store/private"
)

// main sets up the process. Everything that can be tested without a process is in run.
func main() {
	// Before anything else, because arguments and the environment may contain secrets.
	service.DisableCoreDumps()
	// net/http logs responses that no request asked for. They may contain a key, a question or a customer's text.
	log.SetOutput(io.Discard)
	// A private PostgreSQL is watched by a process of this program, in which this call does not return.
	private.RunSupervisorIfRequested()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends a program that ignores the first
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := newProgram()
	p.Stdin, p.Stdout, p.Stderr, p.Terminal, p.Getenv = stdin, stdout, stderr, cli.IsTerminal(stdout), os.Getenv
	return p.Run(ctx, args)
}

// newProgram returns the program without its streams and its environment. Its callers, run and tests, set them.
func newProgram() *cli.Program {
	return &cli.Program{
		Name:     "aiv",
		Summary:  "aiv serves the developer API and administers it",
		Notes:    environment,
		Commands: commands(),
		Redact:   redact,
	}
}

// environment is the end of the program's help.
const environment = `
Environment (flags take precedence):
  DATABASE_URL   the PostgreSQL database; without it, aiv runs a private PostgreSQL
  AIV_DATA_DIR   the folder of the private PostgreSQL
  AIV_ACTOR      the author of changes in the audit log

Exit status: 0 success, 1 failure, 2 invalid command line.
`

// A call is one invocation of a command, with the database that its flags choose.
type call struct {
	*cli.Call
	readSource func() (database.Source, error) // set by databaseFlags
	source     database.Source                 // set by Parse
	givenActor *string                         // set by audited
}

// command adapts a command of this package to package cli.
func command(f func(context.Context, *call) error) func(context.Context, *cli.Call) error {
	return func(ctx context.Context, c *cli.Call) error { return f(ctx, &call{Call: c}) }
}

// reading adapts a command that prints what is in the database. It declares -json and the flags of the database.
func reading(f func(context.Context, *call) error) func(context.Context, *cli.Call) error {
	return command(func(ctx context.Context, c *call) error {
		c.JSONFlag()
		c.databaseFlags()
		return f(ctx, c)
	})
}

// audited adapts a command that the audit log records, and that prints what it did. It declares the flags of reading
// and -actor.
func audited(f func(context.Context, *call) error) func(context.Context, *cli.Call) error {
	return reading(func(ctx context.Context, c *call) error {
		c.givenActor = c.Flags.String("actor", "",
			"the `NAME` that the audit log records for the change (environment: AIV_ACTOR; default: USER@HOST)")
		return f(ctx, c)
	})
}

// Error messages repeat arguments, and messages end up in logs. rawKey keeps the 8 characters that identify a key or
// a worker's token, as lists of keys do.
//
// urlPassword ends at the last @, because a password may contain others. Its first alternative allows white space, but
// no quotation mark, which ends a quoted URL. The second one is for a password with a quotation mark.
//
// dsnPassword matches the password of a keyword/value string, quoted or up to white space. A message may itself be
// quoted with %q, which doubles backslashes: hence \\+ for each of them.
//
// secret matches the secret of a webhook.
var (
	rawKey      = regexp.MustCompile(`(aiv_(?:live|work)_[0-9A-Za-z]{8})[0-9A-Za-z]+`)
	urlPassword = regexp.MustCompile(`(://[^\s/:@]*:)(?:(?:[^"\\]|\\.)*|\S*)@`)
	dsnPassword = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\+.)*'|(?:\\+.|[^\s"\\])+)`)
	secret      = regexp.MustCompile(`(whsec_)[^\s"]+`)
)

// redact removes keys, passwords and secrets from a message. It may remove what follows a password too.
func redact(message string) string {
	// ${1} is what precedes the secret.
	message = rawKey.ReplaceAllString(message, "${1}…")
	message = urlPassword.ReplaceAllString(message, "${1}…@")
	message = dsnPassword.ReplaceAllString(message, "${1}…")
	return secret.ReplaceAllString(message, "${1}…")
}
