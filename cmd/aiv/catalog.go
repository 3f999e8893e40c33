package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"aiv/catalog"
)

// imported tells how many lines of each kind a file held.
type imported struct {
	Providers     int `json:"providers"`
	Methodologies int `json:"methodologies"`
	Models        int `json:"models"`
	Questions     int `json:"questions"`
}

// exported tells what `aiv catalog export -o` wrote.
type exported struct {
	File  string `json:"file"`
	Lines int    `json:"lines"`
}

func catalogImport(ctx context.Context, c *call) error {
	c.jsonFlag()
	c.databaseFlags()
	actor := c.actorFlag()
	args, err := c.parse("FILE")
	if err != nil {
		return err
	}
	file, err := c.input(ctx, args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		told, end := c.progress()
		n, err := (&catalog.Admin{Pool: pool, Actor: actor(), Progress: told}).Import(ctx, file)
		end()
		if err != nil {
			return notImported(err)
		}
		return c.print(imported(n), func(w io.Writer) {
			fmt.Fprintf(w, "Imported %s, %s, %s and %s.\n", count(n.Providers, "provider", "providers"), count(n.Models, "model", "models"),
				count(n.Questions, "question", "questions"), count(n.Methodologies, "methodology", "methodologies"))
		})
	})
}

// input opens a file that a command reads, "-" for stdin, which stops waiting for a keyboard when ctx ends.
func (c *call) input(ctx context.Context, name string) (io.ReadCloser, error) {
	if name != "-" {
		return os.Open(name)
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(w, c.stdin) // stays behind when ctx ends first: nothing wakes a read of a keyboard
		w.CloseWithError(err)
	}()
	return r, nil
}

// notImported sets the faults of a file's lines below one another.
func notImported(err error) error {
	if lines := strings.Split(err.Error(), "\n"); len(lines) > 1 {
		return fmt.Errorf("nothing was imported:\n  %s", strings.Join(lines, "\n  "))
	}
	return fmt.Errorf("nothing was imported: %w", err)
}

func count(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func catalogExport(ctx context.Context, c *call) error {
	c.jsonFlag()
	c.databaseFlags()
	name := c.flags.String("o", "", "the `FILE` to write; it is replaced only by a whole catalog (left out: stdout)")
	if _, err := c.parse(); err != nil {
		return err
	}
	return c.withDatabase(ctx, func(pool *pgxpool.Pool) error {
		if *name == "" {
			return catalog.Export(ctx, pool, c.stdout)
		}
		var lines lineCounter
		err := replaceFile(*name, func(w io.Writer) error { return catalog.Export(ctx, pool, io.MultiWriter(w, &lines)) })
		if err != nil {
			return err
		}
		return c.print(exported{*name, int(lines)}, func(w io.Writer) {
			fmt.Fprintf(w, "Exported %s to %s.\n", count(int(lines), "line", "lines"), *name)
		})
	})
}

type lineCounter int

func (n *lineCounter) Write(b []byte) (int, error) {
	*n += lineCounter(strings.Count(string(b), "\n"))
	return len(b), nil
}
