package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
)

// TestEngineAnswers: a rejected key pauses the provider and ends the worker, and no job fails. Started again, the
// worker waits until an operator resumes the provider. Then it answers the run. The tests of package engines show that
// the key is in no answer and no line of the log.
func TestEngineAnswers(t *testing.T) {
	t.Parallel()
	url, _, _, key := databaseOfCustomer(t)
	serve, dispatch, token := startServe(t, url), startDispatch(t, url), newWorker(t, url).Token
	run := serve.order(t, key.Key, "engine")
	fake := enginestest.New(t, "openai")
	startEngine := func(key string) *process {
		file := filepath.Join(t.TempDir(), "key")
		must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
		return launch(t, exec.Command(binary, append(workArgs(t, dispatch, token), "-engine", "openai", "-provider", "p",
			"-engine-url", fake.URL, "-engine-key-file", file, "-parallel", "3")...))
	}
	const wrong = "wrong-key-0123456789-abcdefghijklmnopqrstuvwxyz"
	const want = "It is paused; correct the cause, then run aiv providers resume p -note TEXT\n"
	refused := startEngine(wrong)
	err := refused.wait()
	if log := refused.log.String(); fmt.Sprint(err) != "exit status 1" || !strings.HasSuffix(log, want) || strings.Contains(log, wrong) {
		t.Fatalf("aiv work ended with %v, and its log has the key or does not end with %q: %s", err, want, tail(log))
	}
	dispatch.hasMetrics(t, `aiv_provider_unavailable{provider="p",reason="secret"} 1`, `aiv_provider_paused{provider="p"} 1`)
	serve.awaitRun(t, key.Key, run, `"queued":6,"running":0,"completed":0,"failed":0`)

	w := startEngine(enginestest.Key)
	dispatch.hasMetrics(t, "aiv_claims_waiting 1")
	if n := len(fake.Requests()); n > 0 {
		t.Errorf("%d requests while the provider is paused", n)
	}
	cli[any](t, url, "providers", "resume", "p", "-note", "a new key")
	serve.awaitRun(t, key.Key, run, `"status":"completed"`)
	results := serve.get(t, "/v1/runs/"+run+"/results", key.Key).body
	if strings.Count(results, `"usage":{"input_tokens":100,"output_tokens":20,`) != 6 || strings.Count(results, `"text":"Kovalt`) != 6 {
		t.Errorf("the 6 answers are %s", results)
	}
	dispatch.hasMetrics(t, `aiv_answer_tokens_total{provider="p",kind="input"} 600`)
	stops(t, w)
	w.awaitLog(t, `"requests":1,"status":200`)
	if log := w.log.String(); strings.Contains(log, enginestest.Key) || strings.Contains(log, "Kovalt") {
		t.Errorf("the log has the key or an answer: %s", tail(log))
	}
}

// TestEngineTry: -try sends a request and settles nothing; its outcome decides the exit status. A key in the
// environment is used, and proxies apply to hosts that are not loopback ones.
func TestEngineTry(t *testing.T) {
	t.Parallel()
	fake := enginestest.New(t, "openai")
	tunnels := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnels <- r.Method + " " + r.RequestURI
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	for _, test := range []struct {
		name, url string
		answer    http.HandlerFunc
		code      int
		want      string // in what it prints
	}{
		{"an answer", fake.URL, nil, 0, `{"outcome":"completed","answer":{"text":"Kovalt."`},
		{"an error", fake.URL, enginestest.Answer(429, `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`), 1,
			`{"outcome":"unavailable","reason":"contract",`},
		{"a proxy", "https://example.com/v1", nil, 1, `"provider_unreachable"`},
	} {
		if test.answer != nil {
			fake.Then(test.answer)
		}
		cmd := exec.Command(binary, "work", "-engine", "openai", "-try", "-model", "gpt-6-sol", "-engine-url", test.url)
		cmd.Env = []string{"OPENAI_API_KEY=" + enginestest.Key, "HTTPS_PROXY=" + proxy.URL, "HTTP_PROXY=" + proxy.URL}
		out, err := combinedOutput(cmd)
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(out, test.want) || strings.Contains(out, enginestest.Key) {
			t.Errorf("%s: %v, %s, want exit %d, %s", test.name, err, out, test.code, test.want)
		}
		if proxied := test.name == "a proxy"; proxied != (len(tunnels) > 0) || proxied && <-tunnels != "CONNECT example.com:443" {
			t.Errorf("%s: %d requests to the proxy", test.name, len(tunnels))
		}
	}
}
