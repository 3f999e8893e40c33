package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The scripts ask aiv itself what may follow the words typed so far, so that they fit whichever aiv is installed. Where it
// knows nothing, as for a file, the shell completes names of files.
var completionScripts = map[string]string{
	"bash": `_aiv() {
  local IFS=$'\n'
  COMPREPLY=($(aiv __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _aiv aiv
`,
	"zsh": `#compdef aiv
_aiv() {
  local -a found
  found=(${(f)"$(aiv __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
if [ "$funcstack[1]" = _aiv ]; then _aiv "$@"; else compdef _aiv aiv; fi
`,
	"fish": `complete -c aiv -a '(aiv __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

func completion(_ context.Context, c *call) error {
	args, err := c.parse("SHELL")
	if err != nil {
		return err
	}
	script, ok := completionScripts[args[0]]
	if !ok {
		return c.wrong("there is completion for %s, not for %q", strings.Join(c.command.words, ", "), args[0])
	}
	_, err = io.WriteString(c.stdout, script)
	return err
}

// complete writes what the last of the words may become, a line each.
func (p *program) complete(ctx context.Context, words []string) error {
	if len(words) == 0 {
		words = []string{""}
	}
	at, name, last := &command{name: "aiv", commands: commands}, "aiv", words[len(words)-1]
	for _, word := range words[:len(words)-1] {
		next := slices.IndexFunc(at.commands, func(c command) bool { return c.name == word })
		if next >= 0 {
			at, name = &at.commands[next], name+" "+word
		} else if at.commands != nil && word != "help" {
			return nil // nothing fits an unknown command
		}
	}
	candidates := at.words
	for _, c := range at.commands {
		candidates = append(candidates, c.name)
	}
	if at.run != nil && strings.HasPrefix(last, "-") {
		c := p.call(at, name, nil)
		c.declared = func(flags *flag.FlagSet) {
			flags.VisitAll(func(f *flag.Flag) { candidates = append(candidates, "-"+f.Name) })
		}
		if err := at.run(ctx, c); !errors.Is(err, flag.ErrHelp) {
			return err
		}
	}
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate, last) {
			fmt.Fprintln(p.stdout, candidate)
		}
	}
	return nil
}

// The table of commands can't name a function that reads the table.
func init() {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == "completion" })
	commands[i].run = completion
}
