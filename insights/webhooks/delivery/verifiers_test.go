package delivery

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/store"
)

var nodeModules = flag.String("node-modules", "", "verify deliveries with the package standardwebhooks in this `FOLDER`, by node")

// A sample is a delivery, and whether a receiver with the secret must accept it.
type sample struct {
	Name    string            `json:"name"`
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Valid   bool              `json:"valid"`
}

// samples returns deliveries that are signed with two secrets, as after a rotation.
func samples() []sample {
	event := store.NewID()
	body := message(events.RunCompleted, time.Now(), []byte(`{"locale":"it-IT","text":"è \"<&>\" \\ %s\u2028"}`))
	signed := func(at time.Time) map[string]string {
		all := make(map[string]string)
		for name, values := range headers(event, at, body, testKey(2), testKey(1)) {
			all[strings.ToLower(name)] = values[0]
		}
		return all
	}
	now := time.Now()
	return []sample{
		{"the new secret", secretOf(testKey(2)), signed(now), string(body), true},
		{"the previous secret", secretOf(testKey(1)), signed(now), string(body), true},
		{"another secret", secretOf(testKey(3)), signed(now), string(body), false},
		{"another body", secretOf(testKey(2)), signed(now), string(body) + " ", false},
		{"an old attempt", secretOf(testKey(2)), signed(now.Add(-time.Hour)), string(body), false},
	}
}

// TestShellVerifies runs the lines of shell that the reference shows.
func TestShellVerifies(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "verify.sh")
	must(t, os.WriteFile(script, []byte(shownScript(t)), 0o600))
	for _, s := range samples() {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "body"), []byte(s.Body), 0o600))
		cmd := exec.CommandContext(t.Context(), "sh", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SECRET="+s.Secret, "ID="+s.Headers["webhook-id"], "TIMESTAMP="+s.Headers["webhook-timestamp"],
			"SIGNATURE="+s.Headers["webhook-signature"])
		if out, err := cmd.CombinedOutput(); (err == nil) != s.Valid || len(out) > 0 {
			t.Errorf("%s: %v, want valid: %t\n%s", s.Name, err, s.Valid, out)
		}
	}
}

// shownScript returns the code block of the reference that verifies a delivery.
func shownScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../gateway/reference/openapi.json")
	must(t, err)
	var d struct {
		Tags []struct{ Name, Description string }
	}
	must(t, json.Unmarshal(text, &d))
	i := slices.IndexFunc(d.Tags, func(tag struct{ Name, Description string }) bool { return tag.Name == "Webhooks" })
	_, block, _ := strings.Cut(d.Tags[i].Description, "``` Verify a delivery\n")
	script, _, ok := strings.Cut(block, "```")
	if !ok {
		t.Fatal("the guide of webhooks has no block that verifies a delivery")
	}
	return script
}

// TestStandardWebhooksVerifies runs with -node-modules only, because it needs a package of npm.
func TestStandardWebhooksVerifies(t *testing.T) {
	if *nodeModules == "" {
		return
	}
	sent, err := json.Marshal(samples())
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "node", "testdata/verify.cjs", *nodeModules)
	cmd.Stdin = strings.NewReader(string(sent))
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "5 deliveries") {
		t.Errorf("%v\n%s", err, out)
	}
}
