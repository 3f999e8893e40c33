package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edges are the imports among the project's packages, the picture in the README: a package may import these, and no
// others of the project's.
var edges = map[string][]string{
	"aiv/store":             {},
	"aiv/store/jsonl":       {"aiv/store"},
	"aiv/store/private":     {},
	"aiv/store/storetest":   {"aiv/store", "aiv/store/private"},
	"aiv/auth":              {"aiv/store"},
	"aiv/limits":            {"aiv/auth", "aiv/store"},
	"aiv/idempotency":       {"aiv/store"},
	"aiv/catalog":           {"aiv/store", "aiv/store/jsonl"},
	"aiv/insights":          {"aiv/store", "aiv/store/jsonl"},
	"aiv/runs":              {"aiv/auth", "aiv/idempotency", "aiv/store"},
	"aiv/checks":            {"aiv/auth", "aiv/catalog", "aiv/runs", "aiv/store"},
	"aiv/gateway/reference": {},
	"aiv/gateway":           {"aiv/auth", "aiv/catalog", "aiv/gateway/reference", "aiv/idempotency", "aiv/insights", "aiv/limits", "aiv/runs", "aiv/store"},
	"aiv/cmd/aiv": {"aiv/auth", "aiv/catalog", "aiv/checks", "aiv/gateway", "aiv/idempotency", "aiv/insights", "aiv/limits", "aiv/runs",
		"aiv/store", "aiv/store/private"},
}

// packages are the modules that the program may be built with, besides the standard library.
var packages = []string{"github.com/jackc/pgx/v5"}

func TestImportEdges(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "aiv/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got[p.ImportPath] = []string{}
		for _, imported := range p.Imports {
			switch {
			case strings.HasPrefix(imported, "aiv/"):
				got[p.ImportPath] = append(got[p.ImportPath], imported)
			case strings.Contains(strings.Split(imported, "/")[0], "."):
				if !slices.ContainsFunc(packages, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }) {
					t.Errorf("%s imports %s; only the standard library and %s are used", p.ImportPath, imported, strings.Join(packages, ", "))
				}
			}
		}
	}
	if diff := cmp.Diff(edges, got); diff != "" {
		t.Errorf("the imports are not those of the picture (-picture +code); change the one that is wrong:\n%s", diff)
	}
}
