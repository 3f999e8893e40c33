package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The scripts ask the program itself for candidates, so that they fit the installed release. NAME is replaced by the
// program's name. Without candidates, as for a file, the shell completes file names.
var completionScripts = []struct{ shell, script string }{
	{"bash", `_NAME() {
  local IFS=$'\n'
  COMPREPLY=($(NAME __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _NAME NAME
`},
	{"zsh", `#compdef NAME
_NAME() {
  local -a found
  found=(${(f)"$(NAME __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
if [ "$funcstack[1]" = _NAME ]; then _NAME "$@"; else compdef _NAME NAME; fi
`},
	{"fish", `complete -c NAME -f -a '(
  set -l found (NAME __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  set -q found[1]; and printf %s\n $found; or __fish_complete_path (commandline -ct)
)'
`},
}

// Shells are the shells for which Completion has a script.
func Shells() (names []string) {
	for _, s := range completionScripts {
		names = append(names, s.shell)
	}
	return names
}

// Completion is the Run function of a command that writes the completion script for the shell in its argument.
func Completion(_ context.Context, c *Call) error {
	args, err := c.Parse("SHELL")
	if err != nil {
		return err
	}
	for _, s := range completionScripts {
		if s.shell == args[0] {
			_, err := io.WriteString(c.Stdout, strings.ReplaceAll(s.script, "NAME", c.Program.Name))
			return err
		}
	}
	return c.Wrong("completion supports %s, not %q", strings.Join(Shells(), ", "), args[0])
}

// complete writes the candidates for the last of the words, one per line.
func (p *Program) complete(ctx context.Context, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	at, name, last := p.root(), p.Name, words[len(words)-1]
	// Find the command that the words before the last one name. Flags and arguments do not matter.
	for _, word := range words[:len(words)-1] {
		if next := at.find(word); next != nil {
			at, name = next, name+" "+word
		} else if at.Commands != nil && word != "help" {
			return nil // an unknown command has no candidates
		}
	}
	candidates := at.Arguments
	for _, c := range at.Commands {
		candidates = append(candidates, c.Name)
	}
	// A command declares its flags only when it runs, so it is run up to its call of Parse.
	if at.Run != nil && strings.HasPrefix(last, "-") && !slices.Contains(words[:len(words)-1], "--") {
		c := p.call(at, name, nil)
		c.declared = func(flags *flag.FlagSet) {
			flags.VisitAll(func(f *flag.Flag) { candidates = append(candidates, "-"+f.Name) })
		}
		if err := at.Run(ctx, c); !errors.Is(err, flag.ErrHelp) {
			return err
		}
	}
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(p.Stdout, candidate)
		}
	}
	return nil
}
