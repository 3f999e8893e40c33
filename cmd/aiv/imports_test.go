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

// allowedImports lists, for each package of the project, the packages of the project that it may import. "x/..." is x
// and the packages below it. The layers point down: cmd/aiv, gateway, the packages that serve it, store.
var allowedImports = map[string][]string{
	"aiv/cmd/aiv":     {"aiv/auth", "aiv/catalog", "aiv/cmd/aiv/capability", "aiv/cmd/aiv/internal/...", "aiv/gateway", "aiv/insights/...", "aiv/runs/...", "aiv/store/..."},
	"aiv/cmd/aiv/e2e": {},
	"aiv/cmd/aiv/capability": {"aiv/auth", "aiv/catalog", "aiv/cmd/aiv/internal/counting", "aiv/idempotency", "aiv/insights/...", "aiv/limits",
		"aiv/runs/...", "aiv/store", "aiv/store/schema"},
	"aiv/cmd/aiv/internal/cli": {},
	"aiv/cmd/aiv/internal/counting": {"aiv/catalog", "aiv/insights/visibility", "aiv/runs/answers", "aiv/runs/jobs",
		"aiv/store"},
	"aiv/cmd/aiv/internal/database": {"aiv/cmd/aiv/internal/cli", "aiv/store", "aiv/store/private"},
	"aiv/cmd/aiv/internal/deletion": {"aiv/auth", "aiv/runs", "aiv/store", "aiv/store/schema"},
	"aiv/cmd/aiv/internal/demo": {"aiv/auth", "aiv/catalog", "aiv/cmd/aiv/internal/counting", "aiv/gateway", "aiv/idempotency",
		"aiv/insights", "aiv/insights/brands", "aiv/insights/visibility", "aiv/insights/webhooks", "aiv/runs/...", "aiv/store", "aiv/store/private"},
	"aiv/cmd/aiv/internal/engines":             {"aiv/cmd/aiv/internal/work", "aiv/gateway/worker", "aiv/insights/brands/match", "aiv/runs/answers"},
	"aiv/cmd/aiv/internal/engines/enginestest": {},
	"aiv/cmd/aiv/internal/service": {"aiv/auth", "aiv/catalog", "aiv/checks", "aiv/cmd/aiv/capability", "aiv/cmd/aiv/internal/cli", "aiv/cmd/aiv/internal/counting", "aiv/cmd/aiv/internal/systemd", "aiv/gateway",
		"aiv/gateway/httpserver", "aiv/gateway/telemetry", "aiv/gateway/worker", "aiv/idempotency", "aiv/insights/...", "aiv/limits", "aiv/runs/...", "aiv/store/..."},
	"aiv/cmd/aiv/internal/status": {"aiv/auth", "aiv/catalog", "aiv/cmd/aiv/capability", "aiv/cmd/aiv/internal/cli", "aiv/cmd/aiv/internal/database", "aiv/cmd/aiv/internal/service",
		"aiv/insights/brands", "aiv/insights/visibility", "aiv/insights/webhooks", "aiv/runs", "aiv/runs/jobs", "aiv/runs/schedules", "aiv/store", "aiv/store/schema"},
	"aiv/cmd/aiv/internal/systemd": {},

	"aiv/cmd/aiv/internal/work": {"aiv/store/strictjson"},

	// gateway must not import checks: it knows the problem codes, not the rules.
	"aiv/gateway": {"aiv/auth", "aiv/catalog", "aiv/gateway/mcp", "aiv/gateway/problem", "aiv/gateway/reference", "aiv/gateway/request", "aiv/gateway/telemetry", "aiv/gateway/wire",
		"aiv/idempotency", "aiv/insights", "aiv/insights/brands", "aiv/insights/events", "aiv/insights/visibility", "aiv/insights/webhooks", "aiv/limits", "aiv/runs/...", "aiv/store/..."},
	"aiv/gateway/httpserver": {"aiv/gateway/telemetry"},
	"aiv/gateway/mcp":        {"aiv/gateway/problem", "aiv/gateway/request", "aiv/gateway/wire", "aiv/store/strictjson"}, // no route
	"aiv/gateway/problem":    {"aiv/gateway/wire", "aiv/store", "aiv/store/batch"},
	"aiv/gateway/reference":  {},
	"aiv/gateway/request":    {"aiv/gateway/problem", "aiv/store/strictjson"},
	"aiv/gateway/telemetry":  {"aiv/auth"},
	"aiv/gateway/wire":       {"aiv/store", "aiv/store/strictjson"},
	"aiv/gateway/worker": {"aiv/auth", "aiv/gateway/problem", "aiv/gateway/request", "aiv/gateway/telemetry", "aiv/gateway/wire", "aiv/insights/brands/match",
		"aiv/runs/...", "aiv/store/..."},

	"aiv/limits":       {"aiv/auth", "aiv/store/..."},
	"aiv/checks":       {"aiv/auth", "aiv/catalog", "aiv/runs", "aiv/store"},
	"aiv/runs":         {"aiv/auth", "aiv/idempotency", "aiv/store/..."},
	"aiv/runs/answers": {"aiv/store", "aiv/store/strictjson"},
	"aiv/runs/jobs":    {"aiv/auth", "aiv/runs", "aiv/runs/answers", "aiv/store/..."},
	"aiv/runs/schedules": {"aiv/auth", "aiv/catalog", "aiv/idempotency", "aiv/insights", "aiv/insights/events", "aiv/insights/visibility", "aiv/runs",
		"aiv/store", "aiv/store/schema", "aiv/store/task"},
	"aiv/runs/results": {"aiv/runs", "aiv/runs/answers", "aiv/runs/jobs", "aiv/store"},

	"aiv/auth":                           {"aiv/store/..."},
	"aiv/idempotency":                    {"aiv/store", "aiv/store/schema"},
	"aiv/catalog":                        {"aiv/store/..."},
	"aiv/insights":                       {"aiv/catalog", "aiv/insights/brands", "aiv/insights/events", "aiv/insights/visibility", "aiv/store/..."},
	"aiv/insights/brands":                {"aiv/insights/brands/match", "aiv/store", "aiv/store/jsonl", "aiv/store/schema"},
	"aiv/insights/brands/match":          {}, // pure: no database, no clock
	"aiv/insights/visibility":            {"aiv/catalog", "aiv/insights/brands/...", "aiv/store", "aiv/store/schema"},
	"aiv/insights/events":                {"aiv/store", "aiv/store/schema"},
	"aiv/insights/webhooks":              {"aiv/insights/events", "aiv/store", "aiv/store/schema"},
	"aiv/insights/webhooks/delivery":     {"aiv/insights/webhooks", "aiv/store", "aiv/store/task"},
	"aiv/insights/webhooks/webhookstest": {"aiv/store", "aiv/store/storetest"},

	"aiv/store":            {"aiv/store/task"},
	"aiv/store/batch":      {"aiv/store"},
	"aiv/store/jsonl":      {"aiv/store", "aiv/store/strictjson"},
	"aiv/store/private":    {},
	"aiv/store/schema":     {"aiv/store"},
	"aiv/store/storetest":  {"aiv/store/...", "github.com/google/go-cmp/cmp"},
	"aiv/store/strictjson": {},
	"aiv/store/task":       {},
}

// TestImportsAreThoseOfTheTable checks the imports of the program, not of its tests, that nothing is allowed
// needlessly, and that pgx is its only dependency.
func TestImportsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
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
		allowed, known := allowedImports[p.ImportPath]
		if !known {
			t.Errorf("package %s is not in the table of allowed imports", p.ImportPath)
		}
		for _, pattern := range allowed {
			if !slices.ContainsFunc(p.Imports, func(imported string) bool { return matches(pattern, imported) }) {
				t.Errorf("%s may import %s and does not; remove it from the table", p.ImportPath, pattern)
			}
		}
		allowed = append(slices.Clone(allowed), "github.com/jackc/pgx/v5/...")
		for _, imported := range p.Imports {
			module, _, _ := strings.Cut(imported, "/")
			may := slices.ContainsFunc(allowed, func(pattern string) bool { return matches(pattern, imported) })
			if (module == "aiv" || strings.Contains(module, ".")) && !may {
				t.Errorf("%s must not import %s", p.ImportPath, imported)
			}
		}
	}
}

func matches(pattern, path string) bool {
	prefix, below := strings.CutSuffix(pattern, "/...")
	return path == prefix || below && strings.HasPrefix(path, prefix+"/")
}
