package main

import (
	"flag"
	"fmt"
	"strings"
	"text/tabwriter"
)

const about = "aiv serves the developer API and administers it"

const environment = `
Environment (a flag of the same meaning comes first):
  DATABASE_URL   the PostgreSQL to use; without it, a private one that aiv runs itself
  AIV_DATA_DIR   the folder of the private PostgreSQL
  AIV_ACTOR      who the audit log says made a change

Exit status: 0 done, 1 failed, 2 the command line is wrong.
`

// groupHelp is the help of a group, and of aiv itself.
func groupHelp(group *command, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\nUsage: %s COMMAND [flags] [arguments]\n\nCommands:\n", group.summary, name)
	w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	for _, c := range group.commands {
		fmt.Fprintf(w, "  %s\t%s\n", c.name, c.summary)
	}
	w.Flush()
	fmt.Fprintf(&b, "\nRun `%s COMMAND -h` for the flags of one and examples.\n", name)
	if name == "aiv" {
		b.WriteString(environment)
	}
	return b.String()
}

// help is the help of the command, with the flags that it has declared by now.
func (c *call) help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\nUsage: %s\n", c.command.summary, strings.TrimSpace(c.name+" "+c.command.usage))
	b.WriteString("\nFlags:\n")
	w := tabwriter.NewWriter(&b, 0, 8, 3, ' ', 0)
	c.flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace("-"+f.Name+" "+value), usage)
	})
	w.Flush()
	if len(c.command.examples) > 0 {
		b.WriteString("\nExamples:\n")
	}
	for _, e := range c.command.examples {
		fmt.Fprintf(&b, "  %s\n", e)
	}
	return b.String()
}
