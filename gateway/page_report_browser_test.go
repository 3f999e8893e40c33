//go:build browser

package gateway_test

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

// record makes the page keep its responses, by address.
const record = `(() => {
	window.responses = {};
	window.sent = [];
	const real = window.fetch;
	window.change = (address, value) => value; // what a test replaces
	window.fetch = async (request) => {
		const address = new URL(request.url).pathname.slice("/external-api-v1".length) + new URL(request.url).search;
		sent.push(address);
		const response = await change(address) ?? await real(request);
		responses[address] = await response.clone().json().catch(() => null);
		return response;
	};
})()`

// TestReportInABrowser tests the report in Chromium with the data of aiv demo.
func TestReportInABrowser(t *testing.T) {
	base, key := startDemo(t)
	origin := strings.TrimSuffix(base, "/external-api-v1")
	p := newTab(t)
	p.size(1280, 900, "light")
	page := base + "/report"
	p.load(page)
	p.eval(record, nil)
	p.t = t

	p.run(t, "asks for a key", func(t *testing.T) {
		p.eval(`document.getElementById("load").click()`, nil)
		p.shows("the focus", `document.activeElement.id`, "key")
		p.shows("the field", `document.getElementById("key-state").textContent`, "Enter an API key first.")
		p.shows("a figure", `document.querySelector("#share .state").textContent`, "Enter an API key and press Load.")
		p.shows("requests", `String(sent.length)`, "0")
	})
	loadReport(p, key)
	p.run(t, "shows the responses", func(t *testing.T) {
		p.isFaultless("the figures", compareReport)
		var sent []string
		p.eval(`sent`, &sent)
		if len(sent) != 9 || sent[0] != "/v1/me" {
			t.Errorf("the first load sends %q", sent)
		}
		p.isFaultless("the page", pageFaults)
	})
	p.run(t, "fits and has contrast", func(t *testing.T) {
		p.eval(`for (const d of document.querySelectorAll("details.data")) d.open = true`, nil)
		p.inEachWindow([]int{320, 360, 640, 680, 768, 1000, 1200, 1280}, func(where string) {
			p.isFaultless(where, fitsReport)
			p.isFaultless(where, contrast)
		})
	})
	p.run(t, "is printed", func(t *testing.T) {
		p.size(690, 1000, "dark") // the width of A4 without its margins
		p.call("Emulation.setEmulatedMedia", map[string]any{"media": "print", "features": []map[string]string{{"name": "prefers-color-scheme", "value": "dark"}}}, nil)
		p.drawn()
		p.isFaultless("on paper", fitsReport)
		p.isFaultless("on paper", contrast)
		p.shows("on paper",
			`[getComputedStyle(document.body).backgroundColor, ...["form", "nav", "button", ".request"].map((s) => document.querySelector(s).checkVisibility())].join()`,
			"rgb(255, 255, 255),false,false,false,false")
		p.showsPart("the header",
			`document.getElementById("scope").textContent + document.getElementById("totals").textContent`, " to ", "as of")
		p.call("Emulation.setEmulatedMedia", map[string]any{"media": ""}, nil)
		p.size(1280, 900, "light")
	})
	p.run(t, "shows gaps", func(t *testing.T) {
		// The week of the outage interrupts lines and bands, and is hatched in every panel.
		p.eval(`(() => {
			const [address] = Object.keys(responses).filter((a) => a.includes("group_by=week"));
			window.lost = responses[address].data.find((r) => r.mention_rate.value === null).group.week;
		})()`, nil)
		var got []int
		p.eval(`["#over-time .panel", "#over-time .gap", "#over-time .band", "#over-time .line", '#over-time .none[data-bucket="' + lost + '"]'].map((s) => document.querySelectorAll(s).length)`, &got)
		if n := got[0]; n == 0 || !cmp.Equal(got, []int{n, n, 2 * n, 2 * n, n}) {
			t.Errorf("panels, gaps, bands, lines and marks without a value: %d", got)
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
	t.Helper()
	start := func(change string, fragment ...string) {
		p.load(page + strings.Join(fragment, ""))
		p.eval(record, nil)
		p.eval(`window.json = (value, status = 200, headers = {}) => new Response(JSON.stringify(value), { status, headers })`, nil)
		p.eval(`window.change = `+change, nil)
		p.eval(`document.getElementById("key").focus()`, nil)
		p.type_(key)
		p.press("Enter")
	}
	state := func(id string) string {
		return `((s) => s.dataset.state + ": " + s.querySelector(".state").textContent)(document.getElementById(` + quote(id) + `))`
	}
	problem := `{ title: "Bad", detail: "No.", code: "internal_error", request_id: "req_1", errors: [{ parameter: "from", detail: "must differ" }] }`

	start(`(a) => a === "/v1/me" ? json({ detail: "The key is not valid." }, 401) : null`)
	p.until(`document.getElementById("key").ariaInvalid === "true"`)
	p.shows("401",
		`document.activeElement.id + " " + document.getElementById("key-state").textContent + " " + sent.length + " " + document.getElementById("brands").dataset.state`,
		"key The key is not valid. 1 idle")

	start(`(a) => a.startsWith("/v1/sources") ? json(` + problem + `, 400) : null`)
	p.until(everyFigure + ` && document.getElementById("sources").dataset.state === "problem" && document.getElementById("alerts").dataset.state === "ready"`)
	p.shows("a problem", state("sources"), "problem: Bad. No. from: must differ. internal_error req_1")
	p.shows("the link of a problem", `document.querySelector("#sources .state a").getAttribute("href")`,
		"/external-api-v1/docs#internal_error")
	p.shows("another figure", `document.getElementById("by-model").dataset.state`, "ready")

	start(`(a) => a.startsWith("/v1/alerts") && !window.once ? (window.once = 1, json({}, 429, { "Retry-After": "1" })) : null`)
	p.until(`!document.getElementById("waiting").hidden && /The limit of this minute is used\. Continues in 1 s\./.test(document.getElementById("waiting").textContent)`)
	p.until(`document.getElementById("alerts").dataset.state === "ready" && document.getElementById("waiting").hidden`)

	start(`(a) => a.startsWith("/v1/alerts") ? json(` + problem + `, 503, { "Retry-After": "60" }) : null`)
	p.until(`!document.getElementById("waiting").hidden`)
	p.eval(`document.getElementById("cancel").focus()`, nil)
	p.eval(`document.getElementById("cancel").click()`, nil)
	p.shows("after Cancel, the focus is on", `document.activeElement.id`, "load")
	p.until(`document.getElementById("alerts").dataset.state === "problem"`)
	p.shows("a canceled wait", state("alerts"), "problem: Canceled. Try again")

	start(`(a) => a.startsWith("/v1/metrics/compare") && !window.once ? (window.once = 1, Promise.reject(new TypeError("Failed to fetch"))) : null`)
	p.until(`document.getElementById("brands").dataset.state === "problem"`)
	p.shows("no connection", state("brands"), "problem: The server cannot be reached. Try again")
	p.until(`/brands?\.$/.test(document.getElementById("status").textContent)`)
	p.eval(`document.querySelector("#brands .state button").click()`, nil)
	p.until(`document.getElementById("brands").dataset.state === "ready"`)

	// The page of a proxy.
	start(`(a) => a.startsWith("/v1/alerts") ? new Response("<html>") : null`)
	p.until(`document.getElementById("alerts").dataset.state === "problem"`)
	p.shows("no JSON", state("alerts"), "problem: The server returned 200. Try again")

	// Until the key is known, all sections wait, and nothing else is sent.
	const late = `await new Promise((f) => window.late = f), null`
	start(`async (a) => a === "/v1/me" ? (` + late + `) : null`)
	p.until(`window.late`)
	p.eval(`document.getElementById("gap").click()`, nil)
	p.shows("before the key is known", state("brands")+` + " " + sent.length`, "loading: Loading… 1")
	p.eval(`late()`, nil)
	const loaded = `/brands?\.$/.test(document.getElementById("status").textContent)`
	p.until(loaded)

	// A request that was sent again does not end the load, and its late response is dropped.
	start(`async (a) => a.startsWith("/v1/sources") && !window.late ? (` + late + `) : null`)
	p.until(`window.late`)
	p.eval(`document.getElementById("gap").click()`, nil)
	p.until(`document.getElementById("sources").dataset.state === "ready"`)
	p.eval(`late()`, nil)
	p.until(loaded + ` && document.getElementById("load").ariaDisabled === "false"`)
	p.shows("sources and models", `document.querySelector("#sources .request").textContent.includes("gap=true") + " " + (document.getElementById("model_id").options.length > 2)`, "true true")

	// The header is of the load whose figures are shown, also before and without its totals.
	start(`(a) => a.startsWith("/v1/metrics?") && !a.includes("group_by") && !window.once ? (window.once = 1, Promise.reject(new TypeError("Failed to fetch"))) : null`)
	p.until(`document.getElementById("brands").dataset.state === "problem" && document.getElementById("load").ariaDisabled === "false"`)
	p.eval(`document.getElementById("branded").value = "true"`, nil)
	const header = `["scope", "totals"].map((id) => document.getElementById(id).hidden + " " + /brand/i.test(document.getElementById(id).textContent)).join()`
	p.shows("the header without totals", header, "false false,true false")
	p.eval(`(() => { const again = document.querySelector("#brands .state button"); again.focus(); again.click(); })()`, nil)
	p.until(everyFigure + ` && document.getElementById("brands").dataset.state === "ready"`)
	p.shows("the header with totals", header, "false false,false false")
	p.shows("after Try again, the focus is on", `document.activeElement.textContent`, "Brands")

	// A key that is revoked while the page is open.
	p.eval(`window.change = (a) => a.startsWith("/v1/sources") ? json({ detail: "The key is not valid." }, 401) : null`, nil)
	p.eval(`document.getElementById("gap").click()`, nil)
	p.until(`document.getElementById("key").ariaInvalid === "true"`)
	p.shows("a revoked key",
		`document.activeElement.id + " " + document.querySelectorAll("main svg, main table, main li").length + " " + ["scope", "totals", "notes"].map((id) => document.getElementById(id).textContent).join("")`,
		"key 0 ")

	const none = `answers: { ok: 0, empty: 0, truncated: 0, failed: 0, canceled: 0, pending: 0, recounting: 0, frozen: 0 }, questions: 0, runs: 0, models: [], complete: true, as_of: "2026-03-02T09:30:15.000000Z"`
	start(`(a) => a.startsWith("/v1/metrics") ? json({ ` + none + `, data: [] }) : null`)
	p.until(everyFigure + ` && document.getElementById("share").dataset.state === "empty" && document.getElementById("over-time").dataset.state === "empty"`)
	p.shows("no brands", state("brands"),
		"empty: The account has no brands. Create one with POST /v1/brands; stored answers are recounted.")
	p.shows("no brands", state("share"), "empty: The account has no brands.")

	start(`async (a) => a.startsWith("/v1/metrics?") ? json({ ` + none + `, data: [{ group: {}, brand_id: "brand_1", brand_name: "B", kind: "own", mentions: 0, mention_rate: { value: null, count: 0, of: 0 } }] }) : null`)
	p.until(everyFigure + ` && document.getElementById("share").dataset.state === "empty" && document.getElementById("brands").dataset.state === "empty"`)
	p.shows("no answers", state("by-model"), "empty: No answers in this period.")

	// Clear filters ends a load that still runs, and begins another one.
	start(`async (a) => a.startsWith("/v1/alerts") && !window.late ? (`+late+`) : a.includes("branded=true") && a.startsWith("/v1/metrics?")
		? json({ `+none+`, data: [{ group: {}, brand_id: "brand_1", brand_name: "B", kind: "own", mentions: 0, mention_rate: { value: null, count: 0, of: 0 } }] }) : null`, "#branded=true")
	p.until(`window.late && document.querySelector("#share .state button")`)
	p.eval(`document.querySelector("#share .state button").click()`, nil)
	p.until(`document.getElementById("share").dataset.state === "ready" && document.getElementById("load").ariaDisabled === "false"`)
	p.shows("after Clear filters", `location.hash + " " + sent.filter((a) => a === "/v1/me").length + " " + document.activeElement.id`, "#weeks=12 2 load")

	// A model whose answers all failed has a group without values.
	start(`(a) => null`)
	p.until(`/brands?\.$/.test(document.getElementById("status").textContent)`)
	p.eval(`(() => {
		const rate = { value: null, low: null, high: null, count: 0, of: 0, low_sample: true, reason: "no_answers" };
		window.change = async (address) => {
			if (!address.includes("group_by=model")) return null;
			const value = structuredClone(responses[address]);
			for (const row of value.data.filter((r, i, all) => r.group.model_id === all[0].group.model_id)) {
				value.data.push({ ...row, group: { model_id: "lost" }, mention_rate: rate });
			}
			return json(value, 200, { "X-RateLimit-Remaining": "100" });
		};
		document.getElementById("load").click();
	})()`, nil)
	p.until(`document.querySelector('#by-model [data-model="lost"]') && document.getElementById("load").ariaDisabled === "false"`)
	p.shows("a model without counted answers", `(() => {
		const marks = [...document.querySelectorAll('#by-model [data-model="lost"]')];
		const drawn = marks.filter((m) => !m.classList.contains("none") || m.querySelector(".interval") || !m.textContent.includes("– no answers"));
		return (marks.length > 1) + " " + drawn.length + " " + document.querySelector("#by-model tbody tr:last-child").textContent.includes("0 of 0");
	})()`, "true 0 true")

	// Texts of third parties are text, whatever they contain, and do not widen the page.
	hostile := `<img src=x onerror=alert(1)>` + strings.Repeat("x", 480) + "\u202e"
	start(`(a) => null`)
	p.until(`/brands?\.$/.test(document.getElementById("status").textContent)`)
	p.eval(`(() => {
		const bad = `+quote(hostile)+`, real = Response.prototype.json;
		window.change = async (address) => {
			const value = structuredClone(responses[address]);
			if (address.startsWith("/v1/metrics")) for (const row of value.data) row.brand_name = bad;
			if (address.startsWith("/v1/sources")) for (const row of value.data) row.host = bad;
			if (address.startsWith("/v1/alerts")) for (const row of value.data) { row.title = bad; row.message = bad; }
			return json(value, 200, { "X-RateLimit-Remaining": "100" });
		};
		document.getElementById("load").click();
	})()`, nil)
	p.until(`document.querySelector("#alerts h3")?.textContent.startsWith("<img") && document.getElementById("load").ariaDisabled === "false"`)
	p.shows("elements made from texts",
		`String(document.querySelectorAll("main img, #sources td a, #sources th a").length)`, "0")
	p.inEachWindow([]int{320, 640, 768, 1000, 1280}, func(where string) { p.isFaultless("hostile texts, "+where, fitsReport) })

	// Reasons of nulls, verdicts and intervals of few answers are the widest cells.
	start(`(a) => null`)
	p.until(`/brands?\.$/.test(document.getElementById("status").textContent)`)
	p.eval(`(() => {
		const none = (reason) => ({ value: null, low: null, high: null, count: 0, of: 0, low_sample: true, reason });
		const wide = { value: 0.995, low: 0.9949, high: 0.9989, count: 199, of: 200, low_sample: true, reason: null };
		window.change = async (address) => {
			const value = structuredClone(responses[address]);
			if (address.startsWith("/v1/metrics/compare")) {
				for (const row of value.data) Object.assign(row.mention_rate, { difference: null, verdict: "not_comparable", reason: "no_sources" });
			} else if (address.startsWith("/v1/metrics")) {
				for (const row of value.data) row.brand_name += " " + "W".repeat(80);
				const few = { mention_rate: wide, citation_rate: wide, first_rate: wide };
				const nulls = { mention_rate: wide, citation_rate: none("no_sources"), first_rate: none("no_mentions"),
					share_of_voice: none("no_competitors"), position: none("no_mentions") };
				value.data.forEach((row, i) => Object.assign(row, i % 2 ? few : nulls));
			}
			return json(value, 200, { "X-RateLimit-Remaining": "100" });
		};
		document.getElementById("load").click();
	})()`, nil)
	p.until(`/known sources/.test(document.getElementById("brands").textContent) && document.getElementById("load").ariaDisabled === "false"`)
	p.inEachWindow([]int{320, 640, 720, 768, 900, 1000, 1280}, func(where string) {
		p.isFaultless("wide cells, "+where, fitsReport)
	})

	// Another key drops the figures.
	p.eval(`(() => { const k = document.getElementById("key"); k.value = "aiv_other"; k.dispatchEvent(new Event("input")); })()`, nil)
	p.shows("after another key was entered",
		`document.querySelectorAll("main svg, main table, main li").length + " " + document.getElementById("brands").dataset.state`,
		"0 idle")
}

// compareReport compares marks, tables and labels with the responses to the addresses that the figures name.
const compareReport = `(() => {
	const faults = [], wrong = (...text) => faults.push(text.join(" "));
	const near = (a, b, what) => { if (!(Math.abs(a - b) <= 0.5)) wrong(what, "is at", a, "want", b); };
	const addresses = (id) => [...document.querySelectorAll("#" + id + " .request code")].map((e) => e.textContent.replace("GET ", ""));
	const rowsOf = (id) => addresses(id).map((a) => responses[a] ?? wrong(id, "names", a, "which was not requested")).at(-1).data;
	const center = (e) => e.tagName === "circle" ? [+e.getAttribute("cx"), +e.getAttribute("cy")]
		: [+e.getAttribute("x") + e.getAttribute("width") / 2, +e.getAttribute("y") + e.getAttribute("height") / 2];
	const number = (e, name) => +e.getAttribute(name);
	// Numbers have four decimals at most, and are rounded half away from zero.
	const rounded = (v, digits) => (Math.floor(Math.round(v * 1e4) / 10 ** (4 - digits) + 0.5) / 10 ** digits).toFixed(digits);
	const percent = (v) => v > 0 && v < 0.01 ? "<1 %" : v > 0.99 && v < 1 ? ">99 %" : rounded(v, 2).replace(/^0\.0?|\./, "") + " %";
	const few = (v) => v.low_sample ? " few answers" : "";
	const plain = (text) => text.replaceAll("\u00a0", " ");
	const totals = rowsOf("share"), top = totals.length;
	const check = (mark, rate, what) => {
		if (!rate) return wrong(what, "has no row");
		if (mark.classList.contains("none") !== (rate.value === null)) return wrong(what, "null differs");
		if (rate.value === null) return;
		if (mark.dataset.value !== String(rate.value) || mark.dataset.low !== String(rate.low) || mark.dataset.high !== String(rate.high)) wrong(what, "differs:", mark.outerHTML.slice(0, 200), JSON.stringify(rate));
		if (mark.classList.contains("low") !== rate.low_sample) wrong(what, "low_sample differs");
		if (rate.low_sample && !mark.querySelector(".dot").classList.contains("hollow")) wrong(what, "is not hollow");
	};
	{
		const rows = rowsOf("by-model"), svg = document.querySelector("#by-model svg"), x0 = number(svg, "data-x0"), x1 = number(svg, "data-x1");
		const marks = [...svg.querySelectorAll(".mark")];
		if (marks.length !== Math.min(rows.length, 6 * 12)) wrong("by-model has", marks.length, "marks of", rows.length);
		for (const m of marks) {
			const rate = rows.find((r) => r.brand_id === m.dataset.brand && r.group.model_id === m.dataset.model)?.mention_rate, what = m.dataset.model + " " + m.dataset.brand;
			check(m, rate, what);
			if (rate.value === null) continue;
			near(center(m.querySelector(".dot"))[0], x0 + rate.value * (x1 - x0), what);
			near(number(m.querySelector(".interval"), "x1"), x0 + rate.low * (x1 - x0), what + " low");
			near(number(m.querySelector(".interval"), "x2"), x0 + rate.high * (x1 - x0), what + " high");
			if (!plain(m.textContent).includes(percent(rate.value))) wrong(what, "has the label", m.textContent);
		}
		const cells = [...document.querySelectorAll("#by-model tbody tr")];
		if (cells.length !== marks.length) wrong("the table of by-model has", cells.length, "rows");
		cells.forEach((tr, i) => {
			const rate = rows.find((r) => r.brand_id === marks[i].dataset.brand && r.group.model_id === marks[i].dataset.model).mention_rate;
			const td = [...tr.children].map((c) => plain(c.textContent));
			const want = rate.value === null ? "–" : (+rounded(rate.value, 3) * 100).toFixed(1) + " %";
			if (td[2] !== want || td[5] !== rate.count + " of " + rate.of) wrong("row", i, td.join("|"), JSON.stringify(rate));
		});
	}
	{
		const address = addresses("over-time").at(-1), unit = new URLSearchParams(address.split("?")[1]).get("group_by"), rows = responses[address].data;
		for (const panel of document.querySelectorAll("#over-time .panel")) {
			const y0 = number(panel, "data-y0"), y1 = number(panel, "data-y1");
			let before = null;
			const steps = [];
			for (const m of panel.querySelectorAll(".mark")) {
				const rate = rows.find((r) => r.brand_id === m.dataset.brand && r.group[unit] === m.dataset.bucket)?.mention_rate ?? { value: null };
				check(m, rate, m.dataset.bucket + " " + m.dataset.brand);
				if (rate.value === null) { before = null; continue; }
				const [x, y] = center(m.querySelector(".dot"));
				near(y, y0 + rate.value * (y1 - y0), m.dataset.bucket);
				near(number(m.querySelector(".interval"), "y1"), y0 + rate.low * (y1 - y0), m.dataset.bucket + " low");
				if (before !== null) steps.push(x - before);
				before = x;
			}
			if (Math.max(...steps) - Math.min(...steps) > 0.5) wrong("the buckets are not at equal distance:", steps.join());
			if (rows.some((r) => r.brand_id === panel.dataset.brand && !panel.querySelector('[data-bucket="' + r.group[unit] + '"]'))) wrong("a bucket is not drawn");
		}
		if (document.querySelectorAll("#over-time .panel").length !== Math.min(6, top)) wrong("panels are missing");
	}
	{
		const svg = document.querySelector("#share svg"), x0 = number(svg, "data-x0"), x1 = number(svg, "data-x1"), max = number(svg, "data-max");
		for (const m of svg.querySelectorAll(".mark")) {
			const share = totals.find((r) => r.brand_id === m.dataset.brand).share_of_voice, bar = m.querySelector(".bar");
			if (m.dataset.value !== String(share.value)) wrong("share of", m.dataset.brand, "is", m.dataset.value);
			near(number(bar, "x"), x0, "a bar");
			near(number(bar, "x") + number(bar, "width"), x0 + share.value / max * (x1 - x0), "the end of a bar");
		}
	}
	{
		const [a, b] = addresses("brands"), changes = responses[b].data;
		const trs = [...document.querySelectorAll("#brands tbody tr")];
		const want = responses[a].data.toSorted((x, y) => (y.kind === "own") - (x.kind === "own") || y.mention_rate.count - x.mention_rate.count || (x.brand_name < y.brand_name ? -1 : 1));
		if (trs.length !== want.length) wrong("brands has", trs.length, "rows");
		trs.forEach((tr, i) => {
			const r = want[i], td = [...tr.children].map((c) => plain(c.textContent)), c = changes.find((x) => x.brand_id === r.brand_id).mention_rate;
			const rate = (v) => percent(v.value) + " " + percent(v.low).replace(" %", "") + "–" + percent(v.high) + few(v);
			const change = c.verdict === "no_clear_change" ? "– no clear change" : c.verdict === "not_comparable" ? "not comparable" : c.verdict;
			const got = [td[1], td[3], td[4], td[5], td[6], td[7]].join("|");
			const expected = [rate(r.mention_rate), rate(r.citation_rate), percent(r.share_of_voice.value), percent(r.first_rate.value) + few(r.first_rate), rounded(r.position.value, 1), String(r.mention_rate.count)].join("|");
			if (got !== expected || !td[2].includes(change) || !td[0].includes(r.brand_name)) wrong("brand", i, got, "want", expected, td[2], change);
		});
	}
	{
		const rows = addresses("sources").flatMap((a) => responses[a].data);
		const trs = [...document.querySelectorAll("#sources tbody tr")];
		if (trs.length !== rows.length) wrong("sources has", trs.length, "rows of", rows.length);
		trs.forEach((tr, i) => {
			const td = [...tr.children].map((c) => plain(c.textContent).trim());
			if (td[0] !== rows[i].host || td[2] !== String(rows[i].answers) || td[3] !== percent(rows[i].citation_share.value)) wrong("source", i, td.join("|"));
		});
		for (const a of document.querySelectorAll("#sources a")) if (a.rel !== "noopener noreferrer nofollow") wrong("a link has rel", a.rel);
	}
	const open = rowsOf("alerts");
	[...document.querySelectorAll("#alerts li")].forEach((li, i) => { if (!li.textContent.includes(open[i].title) || !li.textContent.includes(open[i].message)) wrong("alert", i); });
	for (const svg of document.querySelectorAll("main svg[role=img]")) if (!svg.querySelector(":scope > title").textContent || !/^(Highest|No)/.test(svg.querySelector("desc").textContent)) wrong("a figure has no title or no description");
	return faults;
})()`

// fitsReport returns what is wider than the window, smaller than 12 px or outside its figure, and marks whose contrast
// is below 3:1.
const fitsReport = `(() => {
	const wrong = [], most = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > most) wrong.push("the page is " + document.documentElement.scrollWidth + " px wide: " +
		[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > most + 1).map((e) => e.tagName + "." + e.getAttribute("class")).slice(0, 5).join());
	for (const e of document.querySelectorAll("body *")) {
		if ([...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && e.checkVisibility() && !["TITLE", "DESC", "title", "desc", "OPTION"].includes(e.tagName) && parseFloat(getComputedStyle(e).fontSize) < 12) wrong.push("small text: " + e.textContent.slice(0, 30));
	}
	for (const svg of document.querySelectorAll("main svg[role=img]")) {
		const box = svg.getBoundingClientRect();
		if (Math.abs(box.width - svg.getAttribute("width")) > 1) wrong.push("a figure is scaled: " + box.width + " of " + svg.getAttribute("width"));
		for (const text of svg.querySelectorAll("text")) {
			const r = text.getBoundingClientRect();
			if (r.left < box.left - 1 || r.right > box.right + 1) wrong.push("a label leaves its figure: " + text.textContent);
		}
		for (const panel of svg.querySelectorAll(".panel")) {
			const [name, value] = [".strong", ".value"].map((s) => panel.querySelector(s));
			if (name.getBoundingClientRect().right > value.getBoundingClientRect().left) wrong.push("a name meets its value: " + value.textContent);
		}
	}
	for (const e of document.querySelectorAll("details.data")) {
		if (e.scrollWidth > e.clientWidth + 1) wrong.push("a table of " + e.closest("section").id + " is " + e.scrollWidth + " px wide, of " + e.clientWidth);
	}
	for (const limits of document.querySelectorAll("small.number")) {
		const range = document.createRange();
		range.selectNodeContents(limits);
		if (range.getClientRects().length > 1) wrong.push("an interval is broken: " + limits.textContent);
	}
	for (const cell of document.querySelectorAll("tbody :is(th, td)")) for (const texts = document.createNodeIterator(cell, NodeFilter.SHOW_TEXT); ;) {
		const text = texts.nextNode();
		if (!text) break;
		for (const word of text.data.matchAll(/(?<!\S)\p{L}{2,12}:?(?!\S)/gu)) {
			const range = document.createRange();
			range.setStart(text, word.index);
			range.setEnd(text, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) wrong.push("a word is broken in " + cell.closest("section").id + ": " + word[0]);
		}
	}
	const channels = (c) => c.match(/[\d.]+/g).map(Number).slice(0, 3);
	const luminance = (c) => { const [r, g, b] = channels(c).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const page = luminance(getComputedStyle(document.body).backgroundColor);
	for (const e of document.querySelectorAll(".mark :is(.dot, .bar, .interval), .line")) {
		const [a, b] = [luminance(getComputedStyle(e)[e.matches(".bar") ? "fill" : "stroke"]), page].sort((x, y) => y - x);
		if ((a + 0.05) / (b + 0.05) < 3 || getComputedStyle(e).opacity < 1) { wrong.push("a mark is pale"); break; }
	}
	return wrong;
})()`
