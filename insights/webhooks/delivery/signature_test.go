package delivery

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aiv/insights/events"
	"aiv/store"
	"aiv/store/storetest"
)

var nodeModules = flag.String("node-modules", "",
	"verify deliveries with the package standardwebhooks in this `FOLDER`, by node")

// TestEventReachesAnEndpoint: an event reaches an endpoint in the documented form, and the delivery reports it. Each
// attempt has the same id and body, and its own time, which the signature covers.
func TestEventReachesAnEndpoint(t *testing.T) {
	f, c, r := newPair(t, 500)
	verifier := c.rotate()
	id := c.record(1)[0]
	f.Exec(t, `UPDATE events SET created_at = '2026-01-02 03:04:05.6Z'`)
	wantHeader := http.Header{"Content-Length": {"86"}, "Content-Type": {"application/json"},
		"User-Agent": {"aiv-webhooks/1"}, "Webhook-Id": {id.Text("evt")}}
	before := int64(0) // the time of the attempt before
	for i, want := range []string{
		`status = 'pending' AND attempts = 1 AND last_status = 500 AND last_error = 'status'`,
		`status = 'delivered' AND attempts = 2 AND last_status = 200 AND last_error IS NULL`,
	} {
		began := time.Now().Unix()
		f.deliver()
		q := r.requests[i]
		equal(t, `{"type":"run.completed","timestamp":"2026-01-02T03:04:05.600000Z","data":{"id":"run"}}`, string(q.body))
		must(t, verifier.Verify(q.header, q.body, time.Now()))
		at, err := strconv.ParseInt(q.header.Get("webhook-timestamp"), 10, 64)
		if err != nil || at < began || at > time.Now().Unix() || at == before {
			t.Errorf("webhook-timestamp %d of an attempt after %d, and %d", at, began, before)
		}
		before = at
		maps.DeleteFunc(q.header, func(name string, _ []string) bool {
			return name == "Webhook-Timestamp" || name == "Webhook-Signature"
		})
		equal(t, wantHeader, q.header, "header")
		f.Rows(t, 1, `webhook_deliveries WHERE `+want)
		storetest.Eventually(t, "the next second", func() bool { return time.Now().Unix() > at })
		r.status.Store(200)
		c.due()
	}
}

// TestSignatureVector is the published example of Standard Webhooks.
func TestSignatureVector(t *testing.T) {
	t.Parallel()
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	must(t, err)
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	equal(t, want, sign(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)))
}

// A sample is a delivery, and whether a receiver with the secret must accept it.
type sample struct {
	Name    string            `json:"name"`
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Valid   bool              `json:"valid"`

	want error
}

// samples returns deliveries that are signed with two secrets, as after a rotation.
func samples() (all []sample) {
	key := func(version int) []byte { return bytes.Repeat([]byte{byte(version)}, 32) }
	event, now := store.NewID(), time.Now()
	data := []byte(`{"locale":"it-IT","text":"è \"<&>\" \\ %s\u2028"}`)
	body := message(events.RunCompleted, now.In(time.FixedZone("", 3600)), data)
	for _, test := range []struct {
		name    string
		version int           // of the receiver's secret
		ago     time.Duration // of the attempt
		more    string        // after the body
		without string        // a header
		want    error
	}{
		{name: "the new secret", version: 2},
		{name: "the previous secret", version: 1, ago: 4 * time.Minute},
		{name: "another secret", version: 3, want: ErrSignature},
		{name: "another body", version: 2, more: " ", want: ErrSignature},
		{name: "without an id", version: 2, without: "webhook-id", want: ErrSignature},
		{name: "without a signature", version: 2, without: "webhook-signature", want: ErrSignature},
		{name: "without a timestamp", version: 2, without: "webhook-timestamp", want: ErrTimestamp},
		{name: "an old attempt", version: 2, ago: 6 * time.Minute, want: ErrTimestamp},
		{name: "an attempt in the future", version: 2, ago: -6 * time.Minute, want: ErrTimestamp},
	} {
		s := sample{Name: test.name, Secret: "whsec_" + base64.StdEncoding.EncodeToString(key(test.version)),
			Headers: make(map[string]string), Body: string(body) + test.more, Valid: test.want == nil, want: test.want}
		for name, values := range headers(event, now.Add(-test.ago), body, key(2), key(1)) {
			s.Headers[strings.ToLower(name)] = values[0]
		}
		delete(s.Headers, test.without)
		all = append(all, s)
	}
	return all
}

func TestReceiverVerifies(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		r, err := NewReceiver(s.Secret)
		must(t, err)
		header := make(http.Header)
		for name, value := range s.Headers {
			header.Set(name, value)
		}
		if got := r.Verify(header, []byte(s.Body), time.Now()); got != s.want {
			t.Errorf("%s: %v, want %v", s.Name, got, s.want)
		}
	}
	for _, secret := range []string{"", "whsec_", "whsec_AAAA", strings.Repeat("A", 43) + "=", "whsec_!!!"} {
		if _, err := NewReceiver(secret); err != ErrSecret {
			t.Errorf("the secret %q: %v, want %v", secret, err, ErrSecret)
		}
	}
}

// TestShellVerifies runs the lines of shell that the reference shows.
func TestShellVerifies(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../gateway/reference/openapi.json")
	must(t, err)
	var reference struct {
		Tags []struct{ Name, Description string }
	}
	must(t, json.Unmarshal(text, &reference))
	var script string
	for _, tag := range reference.Tags {
		if _, block, ok := strings.Cut(tag.Description, "``` Verify a delivery\n"); ok {
			script, _, _ = strings.Cut(block, "```")
		}
	}
	for _, s := range samples() {
		if len(s.Headers) < 5 { // the lines are for a request with all headers
			continue
		}
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "body"), []byte(s.Body), 0o600))
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SECRET="+s.Secret, "ID="+s.Headers["webhook-id"],
			"TIMESTAMP="+s.Headers["webhook-timestamp"], "SIGNATURE="+s.Headers["webhook-signature"])
		if out, err := cmd.CombinedOutput(); (err == nil) != s.Valid || len(out) > 0 || script == "" {
			t.Errorf("%s: %v, want valid: %t\n%s", s.Name, err, s.Valid, out)
		}
	}
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
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "9 deliveries") {
		t.Errorf("%v\n%s", err, out)
	}
}
