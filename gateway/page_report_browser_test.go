//go:build browser

package gateway

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/store/storetest"
)

// startDemo starts aiv demo, whose history the report shows.
func startDemo(t *testing.T) (base, key string) {
	t.Helper()
	must(t, storetest.ReadSources(".."))
	dir := t.TempDir()
	program := filepath.Join(dir, "aiv")
	if out, err := exec.Command("go", "build", "-o", program, "aiv/cmd/aiv").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.MkdirTemp("", "aiv-report-") // PostgreSQL may run as another account
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(data) })
	must(t, os.Chmod(data, 0o755))
	cmd := exec.Command(program, "demo", "-addr", "127.0.0.1:0", "-admin-addr", "127.0.0.1:0", "-worker-addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "AIV_DATA_DIR="+filepath.Join(data, "demo"))
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGINT); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for key == "" && lines.Scan() {
		switch name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), "="); name {
		case "export BASE":
			base = value
		case "export KEY":
			key = value
		}
	}
	if key == "" {
		t.Fatal("aiv demo printed no key")
	}
	go io.Copy(io.Discard, out)
	return base, key
}

// loadReport enters a key and loads the figures.
func loadReport(p *tab, key string) {
	p.eval(`document.getElementById("key").focus()`, nil)
	p.eval(`document.getElementById("key").value = ""`, nil)
	p.type_(key)
	p.press("Enter")
	p.until(`/answers?, \d+ brands?\.$/.test(document.getElementById("status").textContent)`)
}

// everyFigure is true when no figure of the report waits for a response.
const everyFigure = `document.querySelector("section[data-state]") &&
	!document.querySelector('section[data-state="idle"], section[data-state="loading"]')`

// TestReportInABrowser tests the report in Chromium with the data of aiv demo.
func TestReportInABrowser(t *testing.T) {
	base, key := startDemo(t)
	origin := strings.TrimSuffix(base, "/external-api-v1")
	p := newTab(t)
	p.size(1280, "light")
	page := base + "/report"
	p.load(page)
	p.eval(script(t, "record"), nil)

	p.run(t, "asks for a key", func(t *testing.T) {
		p.eval(`document.getElementById("load").click()`, nil)
		p.shows("the focus", `document.activeElement.id`, "key")
		p.shows("the field", `document.getElementById("key-state").textContent`, "Enter an API key first.")
		p.shows("a figure", `document.querySelector("#share .state").textContent`, "Enter an API key and press Load.")
		p.shows("requests", `String(sent.length)`, "0")
	})
	loadReport(p, key)
	p.run(t, "shows the responses", func(t *testing.T) {
		p.isFaultless("the figures", "compare_report")
		var sent []string
		p.eval(`sent`, &sent)
		if len(sent) != 9 || sent[0] != "/v1/me" {
			t.Errorf("the first load sends %q", sent)
		}
		p.isFaultless("the page", "page_faults")
	})
	p.run(t, "fits and has contrast", func(t *testing.T) {
		p.eval(`for (const d of document.querySelectorAll("details.data")) d.open = true`, nil)
		p.inEachWindow([]int{320, 360, 640, 768, 1000, 1280}, func(where string) {
			p.isFaultless(where, "fits_report")
			p.isFaultless(where, "contrast")
		})
	})
	p.run(t, "is printed", func(t *testing.T) {
		p.size(690, "dark") // the width of A4 without its margins
		p.call("Emulation.setEmulatedMedia", map[string]any{"media": "print", "features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
		p.drawn()
		p.isFaultless("on paper", "fits_report")
		p.isFaultless("on paper", "contrast")
		p.shows("on paper",
			`[getComputedStyle(document.body).backgroundColor, ...["form", "nav", "button", ".request"].map((s) => document.querySelector(s).checkVisibility())].join()`,
			"rgb(255, 255, 255),false,false,false,false")
		p.showsPart("the header",
			`document.getElementById("scope").textContent + document.getElementById("totals").textContent`, " to ", "as of")
		p.call("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)
		p.size(1280, "light")
	})
	p.run(t, "shows gaps", func(t *testing.T) {
		// The week of the outage interrupts lines and bands. It is hatched in every panel, as is a week that has just begun.
		p.eval(`(() => {
			const [address] = Object.keys(responses).filter((a) => a.includes("group_by=week"));
			window.lost = responses[address].data.find((r) => r.mention_rate.value === null).group.week;
		})()`, nil)
		var got []int
		var gaps int // in a panel
		p.eval(`[...document.querySelector("#over-time .panel").querySelectorAll("[data-bucket]")].map((m) => m.classList.contains("none"))
			.filter((none, i, all) => none && !all[i - 1]).length`, &gaps)
		p.eval(`["#over-time .panel", "#over-time .gap", "#over-time .band", "#over-time .line", '#over-time .none[data-bucket="' + lost + '"]'].map((s) => document.querySelectorAll(s).length)`, &got)
		if n := got[0]; n == 0 || gaps == 0 || !cmp.Equal(got, []int{n, gaps * n, 2 * n, 2 * n, n}) {
			t.Errorf("panels, gaps, bands, lines and marks without a value: %d, with %d gaps in a panel", got, gaps)
		}
	})
	p.run(t, "is heard", func(t *testing.T) {
		var tree struct {
			Nodes []struct {
				Role, Name struct{ Value any }
				Ignored    bool
			}
		}
		p.call("Accessibility.getFullAXTree", nil, &tree)
		found := make(map[string]int)
		for _, n := range tree.Nodes {
			if role, _ := n.Role.Value.(string); !n.Ignored {
				found[role]++
				if name, _ := n.Name.Value.(string); name == "" && (role == "image" || role == "table" || role == "button" || role == "link" || role == "textbox" || role == "combobox") {
					t.Errorf("an element of the role %s has no name", role)
				}
			}
		}
		for role, want := range map[string]int{"image": 3, "table": 5, "banner": 1, "main": 1, "form": 1, "heading": 7} {
			if found[role] < want {
				t.Errorf("%d elements have the role %s, want at least %d", found[role], role, want)
			}
		}
	})
	p.run(t, "works with the keyboard", func(t *testing.T) {
		p.load(page + "#weeks=26&branded=false&x=1&country=it")
		p.shows("the fragment selects",
			`["weeks", "branded", "country"].map((id) => document.getElementById(id).value).join()`, "26,false,")
		p.press("Tab")
		p.shows("Tab first moves the focus to", `document.activeElement.textContent`, "Skip to the figures")
		p.tabTo("#key")
		p.type_(key)
		for _, id := range []string{"#key-shown", "#weeks", "#from", "#to", "#model_id", "#topic", "#country", "#branded", "#load"} {
			p.tabTo(id)
		}
		p.press("Enter")
		p.until(everyFigure + ` && document.getElementById("sources").dataset.state === "ready"`)
		for _, next := range []string{"#by-model summary", "#over-time summary", "#share summary", "#gap"} {
			p.tabTo(next)
		}
		p.press("Space")
		p.until(`document.querySelector("#sources .request")?.textContent.includes("gap=true")`)
		p.shows("after Gaps only, the focus is on", `document.activeElement.id`, "gap")
		p.eval(`document.querySelector(".skip").focus()`, nil)
		p.press("Enter")
		p.shows("the skip link keeps the filters, and moves the focus to",
			`location.hash + " " + document.activeElement.id`, "#weeks=26&branded=false&x=1&country=it content")
	})
	p.run(t, "shows each state", func(t *testing.T) { reportStates(t, p, page, key) })
	p.run(t, "says that it needs JavaScript", func(t *testing.T) {
		p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		p.openAnew(page)
		if got := p.text(`document.body.innerText`); !strings.Contains(got, "This page needs JavaScript.") || strings.Contains(got, "API key") {
			t.Errorf("without JavaScript: %q", got)
		}
		p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
		p.load(page)
		loadReport(p, key)
	})
	p.run(t, "keeps the key to itself", func(t *testing.T) {
		p.keepsSecret(key)
		p.eval(`location.hash = "#weeks=52&key=`+key+`"`, nil)
		p.until(`!location.href.includes("aiv_live_")`)
		p.openAnew(page + "#key=" + strings.Replace(key, "_", "%5F", 1))
		if got := p.text(`location.href`); strings.Contains(got, "live_") {
			t.Errorf("the address is %s", got)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range p.requests {
			// The icon of date fields is data.
			isOurs := strings.HasPrefix(r, origin+"/external-api-v1/")
			if !isOurs && !strings.HasPrefix(r, "about:blank") && !strings.HasPrefix(r, "data:") {
				t.Errorf("the page requested %s", r)
			}
		}
		for _, w := range p.wrongs {
			if !strings.Contains(w, "Failed to load resource") { // a response that a test chose
				t.Errorf("an error in the browser: %s", w)
			}
		}
	})
}

// reportStates shows the page responses that a test chose.
func reportStates(t *testing.T, p *tab, page, key string) {
	// start loads the page and the figures, with a function that returns another response to an address, or null.
	start := func(change string, fragment ...string) {
		t.Helper()
		p.load(page + strings.Join(fragment, ""))
		p.eval(script(t, "record"), nil)
		p.eval(`window.json = (value, status = 200, headers = {}) => new Response(JSON.stringify(value), { status, headers })`, nil)
		p.eval(`window.fail = () => Promise.reject(new TypeError("Failed to fetch"))`, nil)
		p.eval(`window.once = (f) => window.done ? null : (window.done = true, f())`, nil)
		p.eval(`window.change = `+change, nil)
		p.eval(`document.getElementById("key").focus()`, nil)
		p.type_(key)
		p.press("Enter")
	}
	state := func(id string) string {
		return `((s) => s.dataset.state + ": " + s.querySelector(".state").textContent)(document.getElementById(` + quote(id) + `))`
	}
	is := func(id, state string) string {
		return `document.getElementById("` + id + `").dataset.state === "` + state + `"`
	}
	const (
		loaded  = `/brands?\.$/.test(document.getElementById("status").textContent)`
		idle    = `document.getElementById("load").ariaDisabled === "false"`
		rejects = `document.getElementById("key").ariaInvalid === "true"`
		problem = `{ title: "Bad", detail: "No.", code: "internal_error", request_id: "req_1",
			errors: [{ parameter: "from", detail: "must differ" }] }`
		invalid  = `json({ detail: "The key is not valid." }, 401)`
		late     = `await new Promise((f) => window.late = f), null`
		noAnswer = `answers: { ok: 0, empty: 0, truncated: 0, failed: 0, canceled: 0, pending: 0, recounting: 0, frozen: 0 },
			questions: 0, runs: 0, models: [], complete: true, as_of: "2026-03-02T09:30:15.000000Z"`
		noRate = `json({ ` + noAnswer + `, data: [{ group: {}, brand_id: "brand_1", brand_name: "B", kind: "own", mentions: 0, ` +
			`mention_rate: { value: null, count: 0, of: 0 } }] })`
	)

	// Each of these is one response, what the page shows after it, and what it says.
	for _, s := range []struct{ name, change, until, shown, want string }{
		{"an invalid key", `(a) => a === "/v1/me" ? ` + invalid + ` : null`, rejects,
			`[document.activeElement.id, document.getElementById("key-state").textContent, sent.length,
				document.getElementById("brands").dataset.state].join()`,
			"key,The key is not valid.,1,idle"},
		{"a problem", `(a) => a.startsWith("/v1/sources") ? json(` + problem + `, 400) : null`,
			everyFigure + ` && ` + is("sources", "problem") + ` && ` + is("alerts", "ready") + ` && ` + is("by-model", "ready"),
			state("sources") + ` + " " + document.querySelector("#sources .state a").getAttribute("href")`,
			"problem: Bad. No. from: must differ. internal_error req_1 /external-api-v1/docs#internal_error"},
		{"the page of a proxy", `(a) => a.startsWith("/v1/alerts") ? new Response("<html>") : null`, is("alerts", "problem"),
			state("alerts"), "problem: The server returned 200. Try again"},
		{"no connection", `(a) => a.startsWith("/v1/metrics/compare") ? fail() : null`, is("brands", "problem"),
			state("brands"), "problem: The server cannot be reached. Try again"},
		{"no brands", `(a) => a.startsWith("/v1/metrics") ? json({ ` + noAnswer + `, data: [] }) : null`,
			everyFigure + ` && ` + is("share", "empty") + ` && ` + is("over-time", "empty"), state("brands") + ` + " " + ` + state("share"),
			"empty: The account has no brands. Create one with POST /v1/brands; stored answers are recounted. empty: The account has no brands."},
		{"no answers", `async (a) => a.startsWith("/v1/metrics?") ? ` + noRate + ` : null`,
			everyFigure + ` && ` + is("share", "empty") + ` && ` + is("brands", "empty"), state("by-model"), "empty: No answers in this period."},
	} {
		start(s.change)
		p.until(s.until)
		p.shows(s.name, s.shown, s.want)
	}

	// The limit of the minute: the page waits, then repeats the request once. Cancel ends the wait.
	start(`(a) => a.startsWith("/v1/alerts") ? once(() => json({}, 429, { "Retry-After": "1" })) : null`)
	p.until(`waits.length && ` + is("alerts", "ready") + ` && document.getElementById("waiting").hidden`)
	p.shows("the countdown", `String(waits.some((w) => /The limit of this minute is used\. Continues in 1 s\./.test(w)))`, "true")
	start(`(a) => a.startsWith("/v1/alerts") ? json(` + problem + `, 503, { "Retry-After": "60" }) : null`)
	p.until(`!document.getElementById("waiting").hidden`)
	p.eval(`document.getElementById("cancel").focus()`, nil)
	p.eval(`document.getElementById("cancel").click()`, nil)
	p.shows("after Cancel, the focus is on", `document.activeElement.id`, "load")
	p.until(is("alerts", "problem"))
	p.shows("a canceled wait", state("alerts"), "problem: Canceled. Try again")

	// Until the key is known, all sections wait, and nothing else is sent.
	start(`async (a) => a === "/v1/me" ? (` + late + `) : null`)
	p.until(`window.late`)
	p.eval(`document.getElementById("gap").click()`, nil)
	p.shows("before the key is known", state("brands")+` + " " + sent.length`, "loading: Loading… 1")
	p.eval(`late()`, nil)
	p.until(loaded)

	// A request that was sent again does not end the load, and its late response is dropped.
	start(`async (a) => a.startsWith("/v1/sources") && !window.late ? (` + late + `) : null`)
	p.until(`window.late`)
	p.eval(`document.getElementById("gap").click()`, nil)
	p.until(is("sources", "ready"))
	p.eval(`late()`, nil)
	p.until(loaded + ` && ` + idle)
	p.shows("sources and models",
		`[document.querySelector("#sources .request").textContent.includes("gap=true"),
			document.getElementById("model_id").options.length > 2].join()`, "true,true")

	// The header is of the load whose figures are shown, also before and without its totals.
	start(`(a) => a.startsWith("/v1/metrics?") && !a.includes("group_by") ? once(fail) : null`)
	p.until(is("brands", "problem") + ` && ` + idle)
	p.eval(`document.getElementById("branded").value = "true"`, nil)
	const header = `["scope", "totals"].map((id) => document.getElementById(id).hidden + " " + /brand/i.test(document.getElementById(id).textContent)).join()`
	p.shows("the header without totals", header, "false false,true false")
	p.eval(`(() => { const again = document.querySelector("#brands .state button"); again.focus(); again.click(); })()`, nil)
	p.until(everyFigure + ` && ` + is("brands", "ready"))
	p.shows("the header with totals", header, "false false,false false")
	p.shows("after Try again, the focus is on", `document.activeElement.textContent`, "Brands")

	// A key that is revoked while the page is open.
	p.eval(`window.change = (a) => a.startsWith("/v1/sources") ? `+invalid+` : null`, nil)
	p.eval(`document.getElementById("gap").click()`, nil)
	p.until(rejects)
	const figures = `document.querySelectorAll("main svg, main table, main li").length`
	p.shows("a revoked key", figures+` + ["scope", "totals", "notes"].map((id) => document.getElementById(id).textContent).join("")`, "0")

	// Clear filters ends a load that still runs, and begins another one.
	start(`async (a) => a.startsWith("/v1/alerts") && !window.late ? (`+late+`) :
		a.includes("branded=true") && a.startsWith("/v1/metrics?") ? `+noRate+` : null`, "#branded=true")
	p.until(`window.late && document.querySelector("#share .state button")`)
	p.eval(`document.querySelector("#share .state button").click()`, nil)
	p.until(is("share", "ready") + ` && ` + idle)
	p.shows("after Clear filters", `[location.hash, sent.filter((a) => a === "/v1/me").length, document.activeElement.id].join()`,
		"#weeks=12,2,load")

	reportOddResponses(t, p, start, loaded, idle)

	// Another key drops the figures.
	p.eval(`(() => { const k = document.getElementById("key"); k.value = "aiv_other"; k.dispatchEvent(new Event("input")); })()`, nil)
	p.shows("after another key was entered", figures+` + " " + document.getElementById("brands").dataset.state`, "0 idle")
}

// reportOddResponses changes the data of responses: a model without counted answers, and texts of third parties, which
// are text whatever they contain.
func reportOddResponses(t *testing.T, p *tab, start func(string, ...string), loaded, idle string) {
	start(`(a) => null`)
	p.until(loaded + ` && ` + idle) // until then, Load does nothing
	change := func(then, until string) {
		t.Helper()
		p.eval(`(() => {
			window.change = async (address) => {
				const value = structuredClone(responses[address]), rows = value.data ?? [];
				`+then+`
				return json(value, 200, { "X-RateLimit-Remaining": "100" });
			};
			document.getElementById("load").click();
		})()`, nil)
		p.until(until + ` && ` + idle)
	}
	change(`
		if (!address.includes("group_by=model")) return null;
		const rate = { value: null, low: null, high: null, count: 0, of: 0, low_sample: true, reason: "no_answers" };
		for (const row of rows.filter((r) => r.group.model_id === rows[0].group.model_id)) {
			rows.push({ ...row, group: { model_id: "lost" }, mention_rate: rate });
		}`, `document.querySelector('#by-model [data-model="lost"]')`)
	p.shows("a model without counted answers", `(() => {
		const marks = [...document.querySelectorAll('#by-model [data-model="lost"]')];
		const drawn = marks.filter((m) => !m.classList.contains("none") || m.querySelector(".interval") || !m.textContent.includes("– no answers"));
		return (marks.length > 1) + " " + drawn.length + " " + document.querySelector("#by-model tbody tr:last-child").textContent.includes("0 of 0");
	})()`, "true 0 true")

	change(`
		const bad = `+quote(`<img src=x onerror=alert(1)>`+strings.Repeat("x", 480)+"\u202e")+`;
		for (const row of rows) for (const name of ["brand_name", "host", "title", "message"]) if (name in row) row[name] = bad;`,
		`document.querySelector("#alerts h3")?.textContent.startsWith("<img")`)
	p.shows("elements made from texts", `String(document.querySelectorAll("main img, #sources td a, #sources th a").length)`, "0")
	p.inEachWindow([]int{320, 640, 1000, 1280}, func(where string) { p.isFaultless("hostile texts, "+where, "fits_report") })
}
