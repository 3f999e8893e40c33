//go:build browser

package gateway

import (
	"bufio"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"aiv/store/storetest"
)

// A tab is a page of a headless Chromium, controlled over the DevTools protocol [1]. The messages are JSON, each
// followed by a zero byte, on a pipe; this needs no WebSocket.
//
// [1]: https://chromedevtools.github.io/devtools-protocol/
type tab struct {
	t        *testing.T
	to, from *os.File
	messages *bufio.Reader // of from
	session  string
	calls    int
	loads    int      // of pages
	requests []string // addresses that the page requested
	wrongs   []string // errors of scripts and of the content security policy
}

// newTab starts Chromium with an empty profile and ends it with the test.
func newTab(t *testing.T) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		program, err = exec.LookPath("google-chrome")
	}
	if err != nil {
		t.Fatal("Chromium is required; Debian and Ubuntu: apt-get install chromium")
	}
	profile, err := os.MkdirTemp("", "aiv-chromium-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(profile) })
	theirs, to, err := os.Pipe()
	must(t, err)
	from, theirOut, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-breakpad", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.Env = append(os.Environ(), "TMPDIR="+profile) // removed with the profile
	cmd.ExtraFiles = []*os.File{theirs, theirOut}     // file descriptors 3 and 4, as the protocol requires
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	theirs.Close()
	theirOut.Close()
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the process group
		cmd.Wait()
		to.Close()
		from.Close()
	})
	p := &tab{t: t, to: to, from: from, messages: bufio.NewReader(from)}
	var target struct{ TargetID, SessionID string }
	p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	p.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(domain+".enable", nil, nil)
	}
	return p
}

// A message is a reply to a call, or an event.
type message struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
	Method string
	Params json.RawMessage
}

// read returns the next message. It records loaded pages, requests and errors.
func (p *tab) read() (m message) {
	p.t.Helper()
	must(p.t, p.from.SetReadDeadline(time.Now().Add(storetest.Patience)))
	text, err := p.messages.ReadBytes(0)
	if err != nil {
		p.t.Fatalf("%v; errors in the browser: %v", err, p.wrongs)
	}
	must(p.t, json.Unmarshal(text[:len(text)-1], &m))
	switch m.Method {
	case "Page.loadEventFired":
		p.loads++
	case "Network.requestWillBeSent":
		var sent struct{ Request struct{ URL string } }
		must(p.t, json.Unmarshal(m.Params, &sent))
		p.requests = append(p.requests, sent.Request.URL)
	case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
		if !strings.Contains(string(m.Params), `"level":"verbose"`) { // hints
			p.wrongs = append(p.wrongs, string(m.Params))
		}
	}
	return m
}

// call calls a method of the protocol.
func (p *tab) call(method string, params map[string]any, result any) {
	p.t.Helper()
	p.calls++
	sent := map[string]any{"id": p.calls, "method": method}
	if params != nil {
		sent["params"] = params
	}
	if p.session != "" {
		sent["sessionId"] = p.session
	}
	text, err := json.Marshal(sent)
	must(p.t, err)
	_, err = p.to.Write(append(text, 0))
	must(p.t, err)
	reply := p.read()
	for reply.ID != p.calls {
		reply = p.read()
	}
	if reply.Error != nil {
		p.t.Fatalf("%s: %s", method, reply.Error.Message)
	}
	if result != nil {
		must(p.t, json.Unmarshal(reply.Result, result))
	}
}

// eval evaluates JavaScript in the page, awaits its promise and decodes its value.
func (p *tab) eval(script string, value any) {
	p.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	p.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		p.t.Fatalf("%s\n%s\nerrors in the browser: %s", script, r.ExceptionDetails.Exception.Description, strings.Join(p.wrongs, "\n"))
	}
	if value != nil {
		must(p.t, json.Unmarshal(r.Result.Value, value))
	}
}

// shows checks the value of an expression that is a string.
func (p *tab) shows(what, script, want string) {
	p.t.Helper()
	var got string
	p.eval(script, &got)
	storetest.Equal(p.t, want, got, what)
}

// showsPart checks that the value of an expression contains the parts.
func (p *tab) showsPart(what, script string, parts ...string) {
	p.t.Helper()
	var got string
	p.eval(script, &got)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			p.t.Errorf("%s: %q, want %q in it", what, got, part)
		}
	}
}

// scripts are expressions: lists of what is wrong with a page, and what changes it.
//
//go:embed testdata/browser
var scripts embed.FS

func script(t *testing.T, name string) string {
	t.Helper()
	text, err := scripts.ReadFile("testdata/browser/" + name + ".js")
	must(t, err)
	return string(text)
}

// isFaultless checks that scripts that list what is wrong list nothing.
func (p *tab) isFaultless(where string, names ...string) {
	p.t.Helper()
	for _, name := range names {
		var faults []string
		if p.eval(script(p.t, name), &faults); len(faults) > 0 {
			p.t.Errorf("%s, %s: %s", where, name, strings.Join(faults, "\n"))
		}
	}
}

// keepsSecret checks that a key is in no place that outlives the page or is visible.
func (p *tab) keepsSecret(key string) {
	p.t.Helper()
	p.shows("the page, its address or its storage has the key", `String((JSON.stringify([Object.entries(localStorage),
		Object.entries(sessionStorage), document.cookie, location.href, history.state]) +
		document.documentElement.outerHTML).includes("`+key+`"))`, "false")
}

// isQuiet checks that the page has requested only addresses below base, none with a key, and has no errors but expected.
func (p *tab) isQuiet(base, expected string) {
	p.t.Helper()
	for _, r := range p.requests {
		if !strings.HasPrefix(r, base) && r != "about:blank" && !strings.HasPrefix(r, "data:") || strings.Contains(r, "live_") {
			p.t.Errorf("the page requested %s", r)
		}
	}
	for _, w := range p.wrongs {
		if expected == "" || !strings.Contains(w, expected) {
			p.t.Errorf("an error in the browser: %s", w)
		}
	}
}

// run runs a subtest that uses the page.
func (p *tab) run(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		p.t = t
		f(t)
	})
}

// until waits until an expression is true.
func (p *tab) until(condition string) {
	p.t.Helper()
	p.eval(`until(() => `+condition+`)`, nil)
}

// openAnew loads a page from the server, also if only the fragment of its address is new.
func (p *tab) openAnew(address string) {
	p.t.Helper()
	for _, a := range []string{"about:blank", address} {
		loads := p.loads
		for p.call("Page.navigate", map[string]any{"url": a}, nil); p.loads == loads; {
			p.read()
		}
	}
}

// load loads a page anew and waits for its script.
func (p *tab) load(address string) {
	p.t.Helper()
	p.openAnew(address)
	p.eval(script(p.t, "helpers"), nil)
	p.until(`document.body.classList.contains("scripted")`)
}

// withoutScripts opens a page while its scripts are disabled.
func (p *tab) withoutScripts(address string) {
	p.t.Helper()
	p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
	p.openAnew(address)
}

// size sets the width of the window and the preferred color scheme.
func (p *tab) size(width int, scheme string) {
	p.t.Helper()
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": "reduce"}}}, nil)
}

// inEachWindow calls f with windows of several widths, in both color schemes.
func (p *tab) inEachWindow(widths []int, f func(where string)) {
	p.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range widths {
			p.size(width, scheme)
			p.drawn()
			f(fmt.Sprintf("%s at %d px", scheme, width))
		}
	}
	p.size(1280, "light")
}

// drawn waits until the page has been drawn again.
func (p *tab) drawn() {
	p.t.Helper()
	p.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))`, nil)
}

// press presses a named key.
func (p *tab) press(key string) {
	p.t.Helper()
	code := map[string]int{"Tab": 9, "Enter": 13, "Space": 32, "ArrowDown": 40, "ArrowRight": 39}[key]
	event := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code}
	switch key {
	case "Enter":
		event["text"] = "\r"
	case "Space":
		event["text"], event["key"] = " ", " "
	}
	p.call("Input.dispatchKeyEvent", event, nil)
	event["type"] = "keyUp"
	delete(event, "text")
	p.call("Input.dispatchKeyEvent", event, nil)
}

// tabTo presses Tab until the element has the focus.
func (p *tab) tabTo(selector string) {
	p.t.Helper()
	for range 400 {
		p.press("Tab")
		var there bool
		p.eval(`document.activeElement.matches(`+quote(selector)+`)`, &there)
		if there {
			return
		}
	}
	p.t.Fatalf("Tab does not reach %s", selector)
}

func (p *tab) type_(text string) {
	p.t.Helper()
	p.call("Input.insertText", map[string]any{"text": text}, nil)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
