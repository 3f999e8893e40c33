package cli

import (
	"flag"
	"fmt"
	"strings"
	"text/tabwriter"
)

// groupHelp is the help of a group of commands, or of the program itself.
func (p *Program) groupHelp(group *Command, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\nUsage: %s COMMAND [flags] [arguments]\n\nCommands:\n", group.Summary, name)
	w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	for _, c := range group.Commands {
		fmt.Fprintf(w, "  %s\t%s\n", c.Name, c.Summary)
	}
	w.Flush()
	fmt.Fprintf(&b, "\nRun `%s COMMAND -h` for a command's flags and examples.\n", name)
	if name == p.Name {
		b.WriteString(p.Notes)
	}
	return b.String()
}

// help is the help of a command whose flags are declared.
func (c *Call) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\nUsage: %s\n", c.Command.Summary, strings.TrimSpace(c.Name+" "+c.Command.Usage))
	w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	// The first flag writes the heading, so that a command without flags has none.
	heading := "\nFlags:\n"
	c.Flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "%s  %s\t%s%s\n", heading, strings.TrimSpace("-"+f.Name+" "+value), usage, defaultOf(f, usage))
		heading = ""
	})
	w.Flush()
	if len(c.Command.Examples) > 0 {
		b.WriteString("\nExamples:\n")
	}
	for _, e := range c.Command.Examples {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	return b.String() + c.Command.Notes
}

// defaultOf returns the note of a flag's default value. A usage that describes the default has none.
func defaultOf(f *flag.Flag, usage string) string {
	if strings.Contains(usage, "default: ") || f.DefValue == "" || f.DefValue == "false" || f.DefValue == "0" {
		return ""
	}
	return " (default: " + f.DefValue + ")"
}
