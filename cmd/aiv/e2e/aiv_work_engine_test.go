package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/cmd/aiv/internal/engines/enginestest"
	"aiv/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// startEngine starts `aiv work -engine` for the provider p, with a file that has the key.
func startEngine(t *testing.T, dispatch *process, token, engine, url, key string, args ...string) *workProcess {
	t.Helper()
	return startEngineAs(t, func(args ...string) *exec.Cmd { return exec.Command(binary, args...) }, dispatch, token, engine, url, key, args...)
}

// startEngineAs is startEngine with a command that is made of the arguments of aiv.
func startEngineAs(t *testing.T, command func(args ...string) *exec.Cmd, dispatch *process, token, engine, url, key string, args ...string) *workProcess {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	args = append([]string{"-engine", engine, "-provider", "p", "-engine-url", url, "-engine-key-file", file}, args...)
	return startWorkProcess(t, command(append(workArgs(t, dispatch, dir, token), args...)...), dir)
}

// TestEachEngineAnswers: aiv work answers a run by each engine, and results show what the API reported.
func TestEachEngineAnswers(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch, token := startServe(t, url), startDispatch(t, url), newWorker(t, url).Token
	for n, test := range []struct{ engine, version string }{
		{"openai", "gpt-6-sol"}, {"anthropic", "claude-haiku-4-5-20251001"}, {"gemini", "gemini-3.8-flash"},
		{"perplexity", "perplexity/sonar"}, {"xai", "grok-4.7"}, {"chat", "local-7b-q4"},
	} {
		t.Run(test.engine, func(t *testing.T) {
			run := order(t, serve, key.Key, test.engine)
			fake := enginestest.New(t, test.engine)
			w := startEngine(t, dispatch, token, test.engine, fake.URL, enginestest.Key, "-parallel", "3")
			wait(t, "the run", `"status":"completed"`, func() string { return serve.get(t, "/v1/runs/"+run, key.Key).body })
			results := serve.get(t, "/v1/runs/"+run+"/results", key.Key).body
			for _, part := range []string{`"text":"Kovalt`, `"model_version":"` + test.version + `"`, `"usage":{"input_tokens":100,"output_tokens":20,`} {
				if n := strings.Count(results, part); n != 6 {
					t.Errorf("%d of 6 answers have %s", n, part)
				}
			}
			_, page := dispatch.asAdmin(t, "GET", "/metrics", "")
			for kind, tokens := range map[string]int{"input": 600, "output": 120} { // of this engine and of those before
				if line := fmt.Sprintf(`aiv_answer_tokens_total{provider="p",kind=%q} %d`, kind, (n+1)*tokens); !strings.Contains(page, "\n"+line+"\n") {
					t.Errorf("the metrics lack %s", line)
				}
			}
			if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.cmd.Process.Pid)); err == nil && strings.Contains(string(line), enginestest.Key) {
				t.Error("the list of processes has the key")
			}
			if err := w.stop(); err != nil {
				t.Errorf("aiv work ended with %v", err)
			}
			log := w.log.String()
			for _, part := range []string{`"engine":"` + test.engine + `","address":"127.0.0.1:`, `"model":"m","ms":`, `"requests":1,"status":200`, `"input_tokens":100,"output_tokens":20`} {
				if !strings.Contains(log, part) {
					t.Errorf("the log lacks %s", part)
				}
			}
			for _, part := range []string{enginestest.Key, "Kovalt", "kovalt.example", "shoes"} {
				if strings.Contains(log, part) {
					t.Errorf("the log has %s", part)
				}
			}
		})
	}
	if tables := storetest.TablesWith(t, pool, enginestest.Key); tables != nil {
		t.Errorf("the database has the key in %v", tables)
	}
}

// TestEngineUnavailable: a rejected key pauses the provider for all workers, ends the worker, and is shown and
// recorded, until an operator resumes the provider. No job fails.
func TestEngineUnavailable(t *testing.T) {
	t.Parallel()
	url, pool, _, key := databaseOfCustomer(t, 1000)
	serve, dispatch := startServe(t, url), startDispatch(t, url)
	run := order(t, serve, key.Key, "unavailable")
	fake := enginestest.New(t, "openai")
	const wrong = "wrong-key-0123456789-abcdefghijklmnopqrstuvwxyz"
	worker := newWorker(t, url)
	other := startEngine(t, dispatch, newWorker(t, url).Token, "openai", fake.URL, enginestest.Key, "-parallel", "1") // gets no job after the pause
	other.cmd.Process.Signal(syscall.SIGSTOP)
	w := startEngine(t, dispatch, worker.Token, "openai", fake.URL, wrong, "-parallel", "2")
	if err := <-w.ended; fmt.Sprint(err) != "exit status 1" {
		t.Fatalf("aiv work ended with %v", err)
	}
	const message = "The API rejected the key (401 invalid_request_error invalid_api_key)."
	if want := "aiv: provider p is unavailable (secret): " + message + " It is paused; correct the cause, then run aiv providers resume p -note TEXT\n"; !strings.HasSuffix(w.log.String(), want) {
		t.Errorf("the log does not end with %q: %s", want, w.log.end())
	}
	type state struct {
		PauseNote   *string `json:"pause_note"`
		PauseReason *string `json:"pause_reason"`
		PausedBy    *string `json:"paused_by"`
	}
	want := state{new(message), new("secret"), new(worker.ID)}
	if diff := cmp.Diff([]state{want}, cli[[]state](t, url, "providers", "list")); diff != "" {
		t.Errorf("providers list (-want +got):\n%s", diff)
	}
	status := cli[struct {
		Oldest struct{ Why string } `json:"oldest_waiting"`
	}](t, url, "status")
	if why := "the provider is paused (secret): " + message + "; then run aiv providers resume p -note TEXT"; status.Oldest.Why != why {
		t.Errorf("%q, want %q", status.Oldest.Why, why)
	}
	audit := cli[[]struct{ Actor, Action, Subject string }](t, url, "audit", "list", "-subject", "p", "-limit", "1")
	if len(audit) != 1 || audit[0].Action != "providers.unavailable" || audit[0].Actor != worker.ID {
		t.Errorf("audit: %+v", audit)
	}
	metrics := func() string {
		_, page := dispatch.asAdmin(t, "GET", "/metrics", "")
		return page
	}
	for _, line := range []string{`aiv_provider_unavailable{provider="p",reason="secret"} 1`, `aiv_provider_paused{provider="p"} 1`} {
		if page := metrics(); !strings.Contains(page, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if !strings.Contains(serve.get(t, "/v1/runs/"+run, key.Key).body, `"queued":6,"running":0,"completed":0,"failed":0`) {
		t.Error(serve.get(t, "/v1/runs/"+run, key.Key).body)
	}
	if tables := storetest.TablesWith(t, pool, wrong); tables != nil {
		t.Errorf("the key is in %v", tables)
	}
	if log := w.log.String(); strings.Contains(log, wrong) || strings.Contains(log, wrong[:4]+"***") {
		t.Error("the key is in the log")
	}

	// Restarted, the worker waits for the operator.
	must(t, os.WriteFile(filepath.Join(w.dir, "key"), []byte(enginestest.Key), 0o600))
	again := startEngine(t, dispatch, worker.Token, "openai", fake.URL, enginestest.Key)
	other.cmd.Process.Signal(syscall.SIGCONT)
	wait(t, "waiting claims", `\naiv_claims_waiting 2\n`, metrics)
	if n := len(fake.Requests()); n > 0 {
		t.Errorf("%d requests while the provider is paused", n)
	}
	cli[any](t, url, "providers", "resume", "p", "-note", "a new key")
	wait(t, "the run", `"status":"completed"`, func() string { return serve.get(t, "/v1/runs/"+run, key.Key).body })
	for _, w := range []*workProcess{again, other} {
		if err := w.stop(); err != nil {
			t.Errorf("aiv work ended with %v", err)
		}
	}
}

// TestEngineTry: -try sends a request and settles nothing; its outcome decides the exit status. A key in the
// environment is used, and proxies apply to hosts that are not loopback ones.
func TestEngineTry(t *testing.T) {
	t.Parallel()
	fake := enginestest.New(t, "openai")
	tls := httptest.NewTLSServer(fake)
	t.Cleanup(tls.Close)
	tunnels := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnels <- r.Method + " " + r.RequestURI + " " + r.Header.Get("Authorization")
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		api, err := net.Dial("tcp", tls.Listener.Addr().String())
		if err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(api, c); api.Close() }()
		io.Copy(c, api)
		c.Close()
	}))
	t.Cleanup(proxy.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	try := func(env []string, args ...string) (code int, out, errs string) {
		cmd := exec.Command(binary, append([]string{"work", "-engine", "openai", "-try", "-model", "gpt-6-sol"}, args...)...)
		cmd.Env = append([]string{"OPENAI_API_KEY=" + enginestest.Key, "PATH=" + os.Getenv("PATH")}, env...)
		var stdout, stderr logBuffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := runCommand(cmd); cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	code, out, errs := try(nil, "-engine-url", fake.URL)
	if code != 0 || !strings.HasPrefix(out, `{"outcome":"completed","answer":{"text":"Kovalt."`) || strings.Contains(out+errs, enginestest.Key) {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
	fake.Then(enginestest.Answer(429, `{"error":{"message":"x","type":"insufficient_quota","code":"insufficient_quota"}}`))
	code, out, _ = try([]string{"HTTP_PROXY=http://127.0.0.1:1"}, "-engine-url", fake.URL) // no proxy for loopback hosts
	if want := `{"outcome":"unavailable","reason":"contract","message":"The account is out of credit or quota (429 insufficient_quota insufficient_quota)."}` + "\n"; code != 1 || out != want {
		t.Errorf("exit %d, %s, want %s", code, out, want)
	}
	// The certificate is that of httptest for example.com.
	code, out, errs = try([]string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + ca}, "-engine-url", "https://example.com/v1")
	if code != 0 || !strings.HasPrefix(out, `{"outcome":"completed"`) {
		t.Errorf("by a proxy: exit %d, %s%s", code, out, errs)
	}
	if got := <-tunnels; got != "CONNECT example.com:443 " || len(tunnels) > 0 {
		t.Errorf("the proxy got %q and %d more requests", got, len(tunnels))
	}
	code, out, _ = try([]string{"HTTPS_PROXY=" + proxy.URL}, "-engine-url", "https://example.com/v1")
	if code != 1 || !strings.Contains(out, "provider_unreachable") {
		t.Errorf("an unknown CA: exit %d, %s", code, out)
	}
}
