package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
	"aiv/cmd/aiv/internal/cli"
	"aiv/store"
)

// catalogGroup returns the commands of aiv catalog.
func catalogGroup() cli.Command {
	return cli.Command{
		Name:    "catalog",
		Summary: "Import and export models, questions, providers and methodologies",
		Commands: []cli.Command{
			{
				Name:     "import",
				Summary:  "Import a JSON Lines file into the catalog, completely or not at all",
				Usage:    "FILE|- [-json]",
				Examples: []string{"aiv catalog import catalog.jsonl", "aiv catalog import - <catalog.jsonl"},
				Run:      audited(catalogImport),
			},
			{
				Name:     "export",
				Summary:  "Write the catalog as JSON Lines, in the format of import, or with -json as one JSON array",
				Usage:    "[-o FILE] [-json]",
				Examples: []string{"aiv catalog export >catalog.jsonl", "aiv catalog export -o catalog.jsonl"},
				Run:      reading(catalogExport),
			},
		},
	}
}

// imported counts the lines of each kind in a file.
type imported struct {
	Providers     int `json:"providers"`
	Methodologies int `json:"methodologies"`
	Models        int `json:"models"`
	Questions     int `json:"questions"`
}

// exported is what `aiv catalog export -o` wrote.
type exported struct {
	File  string `json:"file"`
	Lines int    `json:"lines"`
}

func catalogImport(ctx context.Context, c *call) error {
	return c.importFile(ctx, func(pool *pgxpool.Pool, file io.Reader, progress func(int)) (any, string, error) {
		n, err := (&catalog.Admin{Pool: pool, Actor: c.actor()}).Import(ctx, file, progress)
		return imported(n), fmt.Sprintf("%s, %s, %s and %s", cli.Count(n.Providers, "provider", "providers"), cli.Count(n.Models, "model", "models"),
			cli.Count(n.Questions, "question", "questions"), cli.Count(n.Methodologies, "methodology", "methodologies")), err
	})
}

// importFile is a command whose argument is a JSON Lines file. read imports it and returns the counts of its lines,
// for JSON and as text. The import is one transaction: an error, or the end of the process, leaves nothing of it.
func (c *call) importFile(
	ctx context.Context, read func(pool *pgxpool.Pool, file io.Reader, progress func(int)) (any, string, error),
) error {
	args, err := c.Parse("FILE")
	if err != nil {
		return err
	}
	// The file is opened before the database, so that a wrong name is reported at once.
	file, err := c.Input(ctx, args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		progress, end := c.Progress(cli.LinesRead)
		counts, text, err := read(pool, file, progress)
		end()
		if err != nil {
			return notImported(err)
		}
		return c.Print(counts, func(w io.Writer) { fmt.Fprintf(w, "Imported %s.\n", text) })
	})
}

// notImported lists the errors of a file's lines, one per line. After a lost connection it is not known whether the
// import was made, so the error does not say that it was not.
func notImported(err error) error {
	if lines := strings.Split(err.Error(), "\n"); len(lines) > 1 {
		return fmt.Errorf("nothing was imported:\n  %s", strings.Join(lines, "\n  "))
	}
	if store.IsUncertain(err) {
		return err
	}
	return fmt.Errorf("nothing was imported: %w", err)
}

// catalogExport writes lines as they are read, without a copy in memory. A file is replaced only when all lines are
// written.
func catalogExport(ctx context.Context, c *call) error {
	name := c.Flags.String("o", "", "the `FILE` to write, always as JSON Lines; it is replaced only by a complete catalog (default: stdout)")
	if _, err := c.Parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		switch {
		case *name == "" && c.AsJSON():
			array := newJSONArray(c.Stdout)
			if err := catalog.Export(ctx, pool, array); err != nil {
				return err
			}
			return array.end()
		case *name == "":
			return catalog.Export(ctx, pool, c.Stdout)
		}
		// Export returns no count, so the lines are counted as they are written.
		var lines lineCounter
		err := cli.ReplaceFile(*name, func(w io.Writer) error { return catalog.Export(ctx, pool, io.MultiWriter(w, &lines)) })
		if err != nil {
			return err
		}
		return c.Print(exported{*name, int(lines)}, func(w io.Writer) {
			fmt.Fprintf(w, "Exported %s to %s.\n", cli.Count(lines, "line", "lines"), *name)
		})
	})
}

// A jsonArray writes JSON Lines as one JSON array. It keeps none of them: a catalog may have more questions than fit in
// memory.
type jsonArray struct {
	w      io.Writer
	next   string // what precedes the next line: [ or ,
	inside bool   // the last write ended inside a line
}

// newJSONArray returns a jsonArray that writes to w. The caller must call end after the last line.
func newJSONArray(w io.Writer) *jsonArray { return &jsonArray{w: w, next: "["} }

// Write implements io.Writer. The lines may be split between calls in any way.
func (a *jsonArray) Write(b []byte) (int, error) {
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		if !a.inside {
			// A separator precedes each line, so that none follows the last one.
			out.WriteString(a.next)
			a.next = ","
		}
		line, ended := bytes.CutSuffix(line, []byte{'\n'})
		out.Write(line)
		a.inside = !ended
	}
	if _, err := a.w.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// end closes the array, which is [] if there was no line.
func (a *jsonArray) end() error {
	closing := "]\n"
	if a.next == "[" {
		closing = "[]\n"
	}
	_, err := io.WriteString(a.w, closing)
	return err
}

// A lineCounter is an io.Writer that counts the lines written to it.
type lineCounter int

func (n *lineCounter) Write(b []byte) (int, error) {
	*n += lineCounter(bytes.Count(b, []byte{'\n'}))
	return len(b), nil
}
