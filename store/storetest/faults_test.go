package storetest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"testing"
)

// TestEveryPackageKnowsTheFlag: `go test ./... -faults=long` tells the flag to all packages with tests, and fails where one
// does not know it.
func TestEveryPackageKnowsTheFlag(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-json=ImportPath,TestGoFiles,XTestGoFiles,TestImports,XTestImports", "aiv/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath                                           string
			TestGoFiles, XTestGoFiles, TestImports, XTestImports []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		tests := len(p.TestGoFiles) + len(p.XTestGoFiles)
		if tests > 0 && !slices.Contains(append(p.TestImports, p.XTestImports...), "aiv/store/storetest") {
			t.Errorf("the tests of %s lack TestMain(m) { storetest.Main(m) }", p.ImportPath)
		}
	}
}
