//go:build browser

package gateway

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aiv/store/storetest"
)

// startDemo starts aiv demo, whose history the report shows.
func startDemo(t *testing.T) (base, key string) {
	t.Helper()
	must(t, storetest.ReadSources(".."))
	program := filepath.Join(t.TempDir(), "aiv")
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

// Conditions of the report.
const (
	isLoaded    = `/answers?, \d+ brands?\.$/.test($("#status").textContent)`
	isIdle      = `$("#load").ariaDisabled === "false"`
	isRejected  = `$("#key").ariaInvalid === "true"`
	everyFigure = `$("section[data-state]") && !$('section[data-state="idle"], section[data-state="loading"]')` // waits for no response
)

// loadReport enters a key and loads the figures.
func loadReport(p *tab, key string) {
	p.t.Helper()
	p.eval(`$("#key").focus(); $("#key").value = ""`, nil)
	p.type_(key)
	p.press("Enter")
}

// TestReportInABrowser tests the report in Chromium with the data of aiv demo.
func TestReportInABrowser(t *testing.T) {
	base, key := startDemo(t)
	p := newTab(t)
	p.size(1280, "light")
	page := base + "/report"
	p.load(page)
	p.eval(script(t, "record"), nil)
	p.run(t, "asks for a key", func(t *testing.T) {
		p.eval(`$("#load").click()`, nil)
		p.shows("the focus, the field, a figure and requests",
			`[document.activeElement.id, $("#key-state").textContent, $("#share .state").textContent, sent.length].join()`,
			"key,Enter an API key first.,Enter an API key and press Load.,0")
	})
	loadReport(p, key)
	p.until(isLoaded)
	p.run(t, "shows the responses", func(t *testing.T) {
		p.isFaultless("the figures", "compare_report")
		p.shows("the requests of the first load", `sent.length + sent[0]`, "9/v1/me")
		p.isFaultless("the page", "page_faults")
	})
	p.run(t, "fits and has contrast", func(t *testing.T) {
		p.eval(`for (const d of $$("details.data")) d.open = true`, nil)
		p.inEachWindow([]int{320, 360, 640, 768, 1000, 1280}, func(where string) {
			p.isFaultless(where, "wide", "fits_report", "contrast")
		})
	})
	p.run(t, "is printed", func(t *testing.T) {
		p.size(690, "dark") // the width of A4 without its margins
		p.call("Emulation.setEmulatedMedia", map[string]any{"media": "print",
			"features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
		p.drawn()
		p.isFaultless("on paper", "wide", "fits_report", "contrast")
		p.shows("on paper", `[getComputedStyle(document.body).backgroundColor,
			...["form", "nav", "button", ".request"].map((s) => $(s).checkVisibility())].join()`, "rgb(255, 255, 255),false,false,false,false")
		p.showsPart("the header", `$("#scope").textContent + $("#totals").textContent`, " to ", "as of")
		p.call("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)
		p.size(1280, "light")
	})
	// The week of the outage interrupts lines and bands. It is hatched in every panel, as is a week that has just begun.
	p.run(t, "shows gaps", func(t *testing.T) {
		p.shows("panels, gaps, bands, lines and marks without a value", `(() => {
			const [address] = Object.keys(responses).filter((a) => a.includes("group_by=week"));
			const lost = responses[address].data.find((r) => r.mention_rate.value === null).group.week;
			const gaps = [...$("#over-time .panel").querySelectorAll("[data-bucket]")].map((m) => m.classList.contains("none"))
				.filter((none, i, all) => none && !all[i - 1]).length;
			const count = (s) => $$("#over-time " + s).length, n = count(".panel");
			return JSON.stringify([n > 0 && gaps > 0, count(".gap") / n === gaps, count(".band") / n, count(".line") / n,
				count('.none[data-bucket="' + lost + '"]') / n]);
		})()`, "[true,true,2,2,1]")
	})
	p.run(t, "is heard", func(t *testing.T) {
		var tree struct {
			Nodes []struct {
				Role, Name struct{ Value any }
				Ignored    bool
			}
		}
		p.call("Accessibility.getFullAXTree", nil, &tree)
		found := make(map[any]int)
		for _, n := range tree.Nodes {
			if n.Ignored {
				continue
			}
			found[n.Role.Value]++
			if strings.Contains(" image table button link textbox combobox ", fmt.Sprint(" ", n.Role.Value, " ")) && n.Name.Value == "" {
				t.Errorf("an element of the role %s has no name", n.Role.Value)
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
		p.shows("the fragment selects", `["weeks", "branded", "country"].map((id) => $("#" + id).value).join()`, "26,false,")
		p.press("Tab")
		p.shows("Tab first moves the focus to", `document.activeElement.textContent`, "Skip to the figures")
		p.tabTo("#key")
		p.type_(key)
		for _, id := range []string{"#key-shown", "#weeks", "#from", "#to", "#model_id", "#topic", "#country", "#branded", "#load"} {
			p.tabTo(id)
		}
		p.press("Enter")
		p.until(everyFigure + ` && $("#sources").dataset.state === "ready"`)
		for _, next := range []string{"#by-model summary", "#over-time summary", "#share summary", "#gap"} {
			p.tabTo(next)
		}
		p.press("Space")
		p.until(`$("#sources .request")?.textContent.includes("gap=true")`)
		p.shows("after Gaps only, the focus is on", `document.activeElement.id`, "gap")
		p.eval(`$(".skip").focus()`, nil)
		p.press("Enter")
		p.shows("the skip link keeps the filters, and moves the focus to",
			`location.hash + " " + document.activeElement.id`, "#weeks=26&branded=false&x=1&country=it content")
	})
	p.run(t, "shows each state", func(t *testing.T) { reportStates(t, p, page, key) })
	p.run(t, "says that it needs JavaScript", func(t *testing.T) {
		p.withoutScripts(page)
		p.shows("the page and its form", `[document.body.innerText.includes("This page needs JavaScript."),
			document.body.innerText.includes("API key")].join()`, "true,false")
		p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
		p.load(page)
		loadReport(p, key)
		p.until(isLoaded)
	})
	p.run(t, "keeps the key to itself", func(t *testing.T) {
		p.keepsSecret(key)
		p.eval(`location.hash = "#weeks=52&key=`+key+`"`, nil)
		p.until(`!location.href.includes("aiv_live_")`)
		p.openAnew(page + "#key=" + strings.Replace(key, "_", "%5F", 1))
		p.shows("the address has the key", `String(location.href.includes("live_"))`, "false")
		p.isQuiet(base, "Failed to load resource") // a response that a test chose
	})
}

// reportStates shows the page responses that a test chose.
func reportStates(t *testing.T, p *tab, page, key string) {
	// start loads the page and the figures, with a function that returns another response to an address, or null.
	start := func(change string, fragment ...string) {
		t.Helper()
		p.load(page + strings.Join(fragment, ""))
		p.eval(script(t, "record"), nil)
		p.eval(`window.change = `+change, nil)
		loadReport(p, key)
	}
	const (
		problem = `{ title: "Bad", detail: "No.", code: "internal_error", request_id: "req_1",
			errors: [{ parameter: "from", detail: "must differ" }] }`
		invalid  = `json({ detail: "The key is not valid." }, 401)`
		late     = `await new Promise((f) => window.late = f), null`
		noAnswer = `answers: { ok: 0, empty: 0, truncated: 0, failed: 0, canceled: 0, pending: 0, recounting: 0, frozen: 0 },
			questions: 0, runs: 0, models: [], complete: true, as_of: "2026-03-02T09:30:15.000000Z"`
		noRate = `json({ ` + noAnswer + `, data: [{ group: {}, brand_id: "brand_1", brand_name: "B", kind: "own", mentions: 0, ` +
			`mention_rate: { value: null, count: 0, of: 0 } }] })`
	)
	is := func(id, state string) string { return `$("#` + id + `").dataset.state === "` + state + `"` }

	// Each of these is one response, what the page shows after it, and what it says.
	for _, s := range []struct{ name, change, until, shown, want string }{
		{"an invalid key", `(a) => a === "/v1/me" ? ` + invalid + ` : null`, isRejected,
			`[document.activeElement.id, $("#key-state").textContent, sent.length, $("#brands").dataset.state].join()`,
			"key,The key is not valid.,1,idle"},
		{"a problem", `(a) => a.startsWith("/v1/sources") ? json(` + problem + `, 400) : null`,
			everyFigure + ` && ` + is("sources", "problem") + ` && ` + is("alerts", "ready") + ` && ` + is("by-model", "ready"),
			`state("sources") + " " + $("#sources .state a").getAttribute("href")`,
			"problem: Bad. No. from: must differ. internal_error req_1 /external-api-v1/docs#internal_error"},
		{"no brands", `(a) => a.startsWith("/v1/metrics") ? json({ ` + noAnswer + `, data: [] }) : null`,
			everyFigure + ` && ` + is("share", "empty") + ` && ` + is("over-time", "empty"), `state("brands") + " " + state("share")`,
			"empty: The account has no brands. Create one with POST /v1/brands; stored answers are recounted. empty: The account has no brands."},
		{"no answers", `async (a) => a.startsWith("/v1/metrics?") ? ` + noRate + ` : null`,
			everyFigure + ` && ` + is("share", "empty") + ` && ` + is("brands", "empty"), `state("by-model")`, "empty: No answers in this period."},
		{"no connection", `(a) => a.startsWith("/v1/metrics?") && !a.includes("group_by") ? once(fail) : null`,
			is("brands", "problem") + ` && ` + isIdle, `state("brands")`, "problem: The server cannot be reached. Try again"},
	} {
		start(s.change)
		p.until(s.until)
		p.shows(s.name, s.shown, s.want)
	}
	p.eval(`$("#brands .state button").focus(); document.activeElement.click()`, nil)
	p.until(everyFigure + ` && ` + is("brands", "ready"))
	p.shows("after Try again, the focus is on", `document.activeElement.textContent`, "Brands")

	// A key that is revoked while the page is open.
	p.eval(`window.change = (a) => a.startsWith("/v1/sources") ? `+invalid+` : null; $("#gap").click()`, nil)
	p.until(isRejected)
	const figures = `$$("main svg, main table, main li").length`
	p.shows("a revoked key", figures+` + ["scope", "totals", "notes"].map((id) => $("#" + id).textContent).join("")`, "0")

	// The limit of the minute: the page waits, then repeats the request once. Cancel ends the wait.
	start(`(a) => a.startsWith("/v1/alerts") ? once(() => json({}, 429, { "Retry-After": "1" })) : null`)
	p.until(`waits.length && ` + is("alerts", "ready") + ` && $("#waiting").hidden`)
	p.shows("the countdown", `String(waits.some((w) => /The limit of this minute is used\. Continues in 1 s\./.test(w)))`, "true")
	start(`(a) => a.startsWith("/v1/alerts") ? json(` + problem + `, 503, { "Retry-After": "60" }) : null`)
	p.until(`!$("#waiting").hidden`)
	p.eval(`$("#cancel").focus(); $("#cancel").click()`, nil)
	p.shows("after Cancel, the focus is on", `document.activeElement.id`, "load")
	p.until(is("alerts", "problem"))
	p.shows("a canceled wait", `state("alerts")`, "problem: Canceled. Try again")

	// Until the key is known, all sections wait, and nothing else is sent.
	start(`async (a) => a === "/v1/me" ? (` + late + `) : null`)
	p.until(`window.late`)
	p.eval(`$("#gap").click()`, nil)
	p.shows("before the key is known", `state("brands") + " " + sent.length`, "loading: Loading… 1")
	p.eval(`late()`, nil)
	p.until(isLoaded)

	// A request that was sent again does not end the load, and its late response is dropped.
	start(`async (a) => a.startsWith("/v1/sources") && !window.late ? (` + late + `) : null`)
	p.until(`window.late`)
	p.eval(`$("#gap").click()`, nil)
	p.until(is("sources", "ready"))
	p.eval(`late()`, nil)
	p.until(isLoaded + ` && ` + isIdle)
	p.shows("sources and models", `[$("#sources .request").textContent.includes("gap=true"), $("#model_id").options.length > 2].join()`, "true,true")

	// Clear filters ends a load that still runs, and begins another one.
	start(`async (a) => a.startsWith("/v1/alerts") && !window.late ? (`+late+`) :
		a.includes("branded=true") && a.startsWith("/v1/metrics?") ? `+noRate+` : null`, "#branded=true")
	p.until(`window.late && $("#share .state button")`)
	p.eval(`$("#share .state button").click()`, nil)
	p.until(is("share", "ready") + ` && ` + isIdle)
	p.shows("after Clear filters", `[location.hash, sent.filter((a) => a === "/v1/me").length, document.activeElement.id].join()`,
		"#weeks=12,2,load")

	// A model without counted answers, and texts of third parties, which are text whatever they contain.
	start(`(a) => null`)
	p.until(isLoaded + ` && ` + isIdle) // until then, Load does nothing
	p.eval(`window.change = async (address) => {
			const value = structuredClone(responses[address]), rows = value?.data ?? [];
			const rate = { value: null, low: null, high: null, count: 0, of: 0, low_sample: true, reason: "no_answers" };
			for (const row of address.includes("group_by=model") ? rows.filter((r) => r.group.model_id === rows[0].group.model_id) : []) {
				rows.push({ ...row, group: { model_id: "lost" }, mention_rate: rate });
			}
			for (const row of rows) for (const name of ["brand_name", "host", "title", "message"]) if (name in row) {
				row[name] = `+quote(`<img src=x onerror=alert(1)>`+strings.Repeat("x", 480)+"\u202e")+`;
			}
			return json(value, 200, { "X-RateLimit-Remaining": "100" });
		};
		$("#load").click()`, nil)
	p.until(`$('#by-model [data-model="lost"]') && $("#alerts h3")?.textContent.startsWith("<img") && ` + isIdle)
	p.shows("a model without counted answers", `(() => {
		const marks = $$('#by-model [data-model="lost"]');
		const drawn = marks.filter((m) => !m.classList.contains("none") || m.querySelector(".interval") || !m.textContent.includes("– no answers"));
		return [marks.length > 1, drawn.length, $("#by-model tbody tr:last-child").textContent.includes("0 of 0")].join();
	})()`, "true,0,true")
	p.shows("elements made from texts", `String($$("main img, #sources td a, #sources th a").length)`, "0")
	p.inEachWindow([]int{320, 640, 1000, 1280}, func(where string) { p.isFaultless("hostile texts, "+where, "wide", "fits_report") })

	// Another key drops the figures.
	p.eval(`$("#key").value = "aiv_other"; $("#key").dispatchEvent(new Event("input"))`, nil)
	p.shows("after another key was entered", figures+` + " " + $("#brands").dataset.state`, "0 idle")
}
