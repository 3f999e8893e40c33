package gateway

import (
	"context"
	"crypto/tls"
	"flag"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aiv/store/storetest"
	"aiv/testdata/golden"
)

func TestMain(m *testing.M) { storetest.Main(m) }

var (
	update  = flag.Bool("update", false, "rewrite the responses of the golden files with what this process answers")
	baseURL = flag.String("base-url", "", "run the golden files against a started server, such as http://127.0.0.1:8080"+Base+
		"; its keys are taken from AIV_GOLDEN_KEY_NAME for each NAME of a {key:name}")
	workerURL = flag.String("worker-url", "", "the worker interface that goes with -base-url, such as http://127.0.0.1:8081"+
		"; its tokens are taken from AIV_GOLDEN_WORKER_NAME for each NAME of a {worker:name}; without it, the files that need it are left out")
)

const goldenRoot = "../testdata/golden"

// goldenFS returns the golden files: the source's, or the copies in the test binary where there is no source.
func goldenFS() fs.FS {
	if _, err := os.Stat(goldenRoot); err != nil {
		return golden.Files
	}
	return os.DirFS(goldenRoot)
}

func readGolden(t testing.TB, file string) string {
	t.Helper()
	text, err := fs.ReadFile(goldenFS(), file)
	must(t, err)
	return string(text)
}

// TestGolden sends the requests of the golden files and compares the responses. It is not parallel: with -update,
// TestGoldenExamples copies what it has written.
func TestGolden(t *testing.T) {
	if *update && *baseURL != "" {
		t.Fatal("-update writes the responses of this process; it cannot be used with -base-url")
	}
	var address *target
	played := make(map[string]bool) // folders
	if *baseURL != "" {
		address = remote(t, *baseURL)
	} else {
		var log strings.Builder
		f := newFixture(t).asServe(t)
		f.log = slog.New(slog.NewJSONHandler(&log, nil))
		t.Cleanup(func() { f.checkLog(t, log.String(), played) }) // after the servers have ended
		address = f.target(t)
		f.serveWorkers(t, address)
	}
	for _, file := range goldenFiles(t) {
		text := readGolden(t, file)
		s := parseStory(t, text)
		if address.dialWorkers == nil && toWorkers.MatchString(text) {
			t.Logf("%s is left out, because it needs a worker interface; give its address with -worker-url", file)
			continue
		}
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			at := address
			played[filepath.Dir(file)] = true
			if s.fault != "" {
				if *baseURL != "" {
					return // a fault cannot be caused in a deployment; the README says so
				}
				t.Parallel()
				at = newFixture(t).asServe(t).broken(t, s.fault)
			}
			got := at.play(t, s)
			if *update {
				must(t, os.WriteFile(filepath.Join(goldenRoot, file), []byte(got.String()), 0o644))
				return
			}
			if diff := cmp.Diff(strings.Split(text, "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", s.about, diff)
			}
		})
	}
}

// checkLog checks the log of the golden files: no mistake of a client is an error of the service, and no key is logged,
// but for its public prefix.
func (f *fixture) checkLog(t *testing.T, log string, played map[string]bool) {
	t.Helper()
	for folder, route := range map[string]string{"runs.create": "POST /v1/runs", "worker.claim": "POST /worker/v1/claim"} {
		if played[folder] && !strings.Contains(log, `"route":"`+route+`"`) {
			t.Errorf("%s is not logged", route)
		}
	}
	if _, line, found := strings.Cut(log, `"level":"ERROR"`); found {
		t.Errorf("a mistake of a client is logged as an error of the service:\n%.1000s", line)
	}
	for name, key := range f.keys {
		if strings.Contains(log, key[len("aiv_live_12345678"):]) {
			t.Errorf("the log contains the key %s", name)
		}
	}
}

func goldenFiles(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(goldenFS(), "*/*.txt")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no golden files")
	}
	return files
}

// target is a server that receives the requests of stories.
type target struct {
	dial        func(context.Context) (net.Conn, error)
	dialWorkers func(context.Context) (net.Conn, error) // the worker interface; nil: not reachable
	keys        map[string]string                       // by the name of a {key:name}, or "worker:name" of a {worker:name}
	deployed    bool                                    // others may use the keys
}

func remote(t *testing.T, base string) *target {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil || u.Path != Base {
		t.Fatalf("-base-url %q: want http(s)://HOST:PORT%s", base, Base)
	}
	at := &target{keys: make(map[string]string), dial: dialer(u), deployed: true}
	for _, pair := range os.Environ() {
		name, key, _ := strings.Cut(pair, "=")
		for prefix, kind := range map[string]string{"AIV_GOLDEN_KEY_": "", "AIV_GOLDEN_WORKER_": "worker:"} {
			if name, ok := strings.CutPrefix(name, prefix); ok {
				at.keys[kind+strings.ToLower(name)] = key
			}
		}
	}
	if *workerURL == "" {
		return at
	}
	if u, err = url.Parse(*workerURL); err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		t.Fatalf("-worker-url %q: want http(s)://HOST:PORT", *workerURL)
	}
	at.dialWorkers = dialer(u)
	return at
}

// dialer returns a function that connects to the host of an address.
func dialer(u *url.URL) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		host := u.Host
		if u.Port() == "" {
			host += map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
		}
		if u.Scheme == "https" {
			return (&tls.Dialer{}).DialContext(ctx, "tcp", host)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", host)
	}
}

// play sends the requests of a story and returns it with the responses. With the directive "minute: one", a request is
// sent again when the minute has ended before it: the first time, it was the first one of another minute.
func (at *target) play(t *testing.T, s story) story {
	t.Helper()
	got, n := story{about: s.about}, newNames()
	var minute string
	for i, e := range s.exchanges {
		raw := n.wire(t, e.request, at.keys)
		responses := at.sendAtOnce(t, raw, e.times)
		if s.oneMinute && i == 0 && at.deployed && strings.Contains(responses[0], " 429 ") {
			waitForNextMinute(t) // an earlier run has used up the key in this one
			responses = at.sendAtOnce(t, raw, e.times)
		}
		for now := resetOf(responses[0]); now != minute; now = resetOf(responses[0]) {
			if minute = now; s.oneMinute && i > 0 {
				responses = at.sendAtOnce(t, raw, e.times)
			}
		}
		got.exchanges = append(got.exchanges, step{e.mark, e.request, e.times, n.format(responses)})
	}
	return got
}

// resetOf returns when the minute of a response ends, or "".
func resetOf(response string) string {
	_, reset, _ := strings.Cut(response, "X-RateLimit-Reset: ")
	reset, _, _ = strings.Cut(reset, "\n")
	return reset
}

// sendAtOnce sends a request a number of times.
func (at *target) sendAtOnce(t *testing.T, raw []byte, times int) []string {
	t.Helper()
	responses := make([]string, times)
	storetest.AtOnce(times, func(k int) { responses[k] = at.send(t, raw) })
	if t.Failed() {
		t.FailNow()
	}
	return responses
}

// waitForNextMinute waits until the window of each key has ended.
func waitForNextMinute(t testing.TB) {
	t.Helper()
	select {
	case <-time.After(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))):
	case <-t.Context().Done():
		t.FailNow()
	}
}

func (at *target) send(t testing.TB, raw []byte) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	head := string(raw[:min(len(raw), 64)])
	method, _, _ := strings.Cut(head, " ")
	dial := at.dial
	if toWorkers.MatchString(head) {
		dial = at.dialWorkers
	}
	conn, err := dial(ctx)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	// A server may answer, and close, before it has read a body that is too large: then writing fails and reading does
	// not.
	go conn.Write(raw)
	response, err := readResponse(conn, method)
	if err != nil {
		t.Errorf("reading the response: %v", err)
	}
	return response
}
