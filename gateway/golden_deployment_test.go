package gateway_test

import (
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"aiv/gateway"
)

// TestWithoutWorkerURL: the golden files run against a deployment whose worker interface cannot be reached, except
// those that need it.
func TestWithoutWorkerURL(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.gateway(io.Discard))
	t.Cleanup(server.Close)
	self, err := os.Executable()
	must(t, err)
	// runs.cancel has one file that needs workers, and worker.claim none that does not.
	suite := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^TestGolden$/^(me|runs.cancel|worker.claim)$", "-base-url="+server.URL+gateway.Base)
	suite.Env = os.Environ()
	for name, key := range f.keys {
		suite.Env = append(suite.Env, "AIV_GOLDEN_KEY_"+strings.ToUpper(name)+"="+key)
	}
	output, err := suite.CombinedOutput()
	text := string(output)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for part, want := range map[string]int{
		"golden files are left out, because they need a worker interface": 1,
		"--- PASS: TestGolden/me/ok":                                      1,
		"--- PASS: TestGolden/runs.cancel/ok":                             1,
		"TestGolden/runs.cancel/run_final":                                0,
		"TestGolden/worker.claim":                                         0,
	} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("the output contains %q %d times, want %d:\n%s", part, got, want, text)
		}
	}
}
