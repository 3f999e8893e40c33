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
)

// layers lists the folders of the project from top to bottom. A package may import packages of its own folder and of
// lower layers.
var layers = []string{"cmd", "gateway", "checks limits", "runs", "insights", "auth catalog idempotency", "store"}

// pure lists packages that import none of the project: insights/brands/match has no database and no clock.
const pure = `cmd/aiv/e2e cmd/aiv/internal/cli cmd/aiv/internal/engines/enginestest cmd/aiv/internal/systemd gateway/reference
	insights/brands/match store/private store/strictjson store/task`

// TestImportsPointDown checks the imports of the program, not of its tests, and that pgx is its only dependency. gateway
// must not import checks: it knows the problem codes, not the rules.
func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	layer := func(folder string) int {
		i := slices.IndexFunc(layers, func(l string) bool { return slices.Contains(strings.Fields(l), folder) })
		if i < 0 {
			t.Errorf("%s is in no layer", folder)
		}
		return i
	}
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "aiv/...").Output()
	must(t, err)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, "aiv/")
		folder, _, _ := strings.Cut(name, "/")
		for _, imported := range p.Imports {
			path, own := strings.CutPrefix(imported, "aiv/")
			from, _, _ := strings.Cut(path, "/")
			may := !strings.Contains(from, ".") || strings.HasPrefix(path, "github.com/jackc/pgx/v5") || // or the standard library
				path == "github.com/google/go-cmp/cmp" && name == "store/storetest"
			if own {
				may = (from == folder || layer(from) > layer(folder)) && !(folder == "gateway" && from == "checks") &&
					!slices.Contains(strings.Fields(pure), name)
			}
			if !may {
				t.Errorf("%s must not import %s", name, imported)
			}
		}
	}
}
