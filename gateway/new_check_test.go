package gateway_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The parts of a new check.
const (
	newCheck = `package checks

import (
	"context"

	"aiv/runs"
)

// ClosedCountry rejects runs in countries without respondents.
var ClosedCountry = Check{
	Name: "closed_country",
	Doc:  "The country must have respondents.",
	Run:  closedCountry,
}

func closedCountry(_ context.Context, p *Proposal) ([]runs.Fault, error) {
	if p.Country != "AQ" {
		return nil, nil
	}
	return []runs.Fault{{Code: "country_closed", Title: "The country is closed", Pointer: "/country", Detail: "has no respondents"}}, nil
}
`
	newCheckTest = `package checks_test

import (
	"testing"

	"aiv/checks"
	"aiv/runs"
)

func TestClosedCountry(t *testing.T) {
	checkTable(t, checks.ClosedCountry, []row{
		{"open", nil, nil},
		{"closed", func(p *checks.Proposal) { p.Country = "AQ" },
			[]runs.Fault{{Code: "country_closed", Title: "The country is closed", Pointer: "/country", Detail: "has no respondents"}}},
	})
}
`
	newCheckGolden = `A run in a country without respondents is rejected.

-- request --
POST /external-api-v1
Authorization: Bearer {key:full}
Content-Type: application/json
Idempotency-Key: {fresh:a}

{"path":"/v1/runs","method":"POST","body":{"model_ids":["golden/all"],"question_ids":["golden-q1"],"repetitions":3,"measurement_type":"grounded","locale":"it-IT","country":"AQ","language":"it"}}
`
	newCheckCode = `          {
            "const": "country_closed",
            "x-status": 422,
            "x-check": "closed_country",
            "description": "The country has no respondents."
          },
`
)

// TestNewCheck adds a run check to the module: a file, a test, a golden file, a line in checks.Standard and an entry in
// openapi.json, whose example -update writes. The tests are compiled with an overlay and run in a folder with copies of the
// files that they read, so that the module stays as it is. Without the entry in openapi.json they fail.
func TestNewCheck(t *testing.T) {
	root, err := filepath.Abs("..")
	must(t, err)
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "testdata/golden"), os.DirFS(goldenRoot)))
	overlay := make(map[string]string)
	write := func(path, text string) {
		to := filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(t, os.WriteFile(to, []byte(text), 0o644))
		if strings.HasSuffix(path, ".go") {
			overlay[filepath.Join(root, path)] = to
		}
	}
	insert := func(path, before, text string) {
		old, err := os.ReadFile(filepath.Join(root, path))
		must(t, err)
		if !strings.Contains(string(old), before) {
			t.Fatalf("%s does not contain %q", path, before)
		}
		write(path, strings.Replace(string(old), before, text+before, 1))
	}
	write("checks/closed_country.go", newCheck)
	write("checks/closed_country_test.go", newCheckTest)
	write("testdata/golden/runs.create/rejected_closed_country.txt", newCheckGolden)
	insert("checks/checks.go", "\t\tGroundedSearch,", "\t\tClosedCountry, // before grounded search: it needs no catalog\n")
	insert("gateway/"+openAPIFile, "{\n  \"openapi\"", "")

	text, err := json.Marshal(map[string]any{"Replace": overlay})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o644))
	build := "-overlay=" + filepath.Join(dir, "overlay.json")
	tests := filepath.Join(dir, "gateway/gateway.test")
	run := func(dir, name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	mustRun := func(dir, name string, args ...string) {
		t.Helper()
		if out, err := run(dir, name, args...); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	mustRun(root, "go", "test", build, "./checks", "-run", "TestClosedCountry")
	mustRun(root, "go", "test", build, "-c", "-o", tests, "./gateway")

	here := filepath.Join(dir, "gateway")
	const described = "^(TestGoldenExamples|TestEvery.*GoldenCase|TestEveryCheck.*|TestOpenAPI(AndGoldenFiles|Examples|Routes|Schemas|Values)|TestProblemCodes)$"
	mustRun(here, tests, "-test.run", "TestGolden/runs.create/rejected_closed_country", "-update")
	if out, err := run(here, tests, "-test.run", described); err == nil || !strings.Contains(out, "country_closed") {
		t.Errorf("without an entry in openapi.json the tests should fail and name the code: %v\n%s", err, out)
	}
	insert("gateway/"+openAPIFile, "          {\n            \"const\": \"rate_limit_exceeded\",", newCheckCode)
	mustRun(here, tests, "-test.run", "TestGoldenExamples", "-update")
	mustRun(here, tests, "-test.run", described)
	mustRun(here, tests, "-test.run", "TestGolden/runs.create/rejected_")
}
