//go:build browser

package gateway_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
)

var screenshots = flag.String("screenshots", "", "write screenshots of the reference page to this `FOLDER`")

// pageAddress returns the origin of a target and the address of its page.
func pageAddress(t *testing.T, at *target) (origin, page string) {
	t.Helper()
	conn, err := at.dial(t.Context())
	must(t, err)
	defer conn.Close()
	origin = "http://" + conn.RemoteAddr().String()
	return origin, origin + gateway.Base + "/docs"
}

// TestPageInABrowser tests the reference page in Chromium.
func TestPageInABrowser(t *testing.T) {
	f := newFixture(t)
	at := f.target(t)
	f.serveWorkers(t, at)
	origin, page := pageAddress(t, at)
	p := newTab(t)
	p.size(1280, 900, "light")
	p.open(page)
	p.until(`document.body.classList.contains("scripted")`)

	t.Run("is well formed", func(t *testing.T) {
		p.t = t
		if diff := cmp.Diff([]string{}, pageFaults(t, p)); diff != "" {
			t.Error(diff)
		}
		for _, c := range openAPI(t).codes() {
			var text string
			p.eval(`document.getElementById(`+quote(c.code)+`)?.querySelector("h3")?.textContent ?? ""`, &text)
			if !strings.HasSuffix(text, c.code) {
				t.Errorf("the type of the problem %s is not the id of its section: %q", c.code, text)
			}
		}
	})
	t.Run("fits and has contrast", func(t *testing.T) {
		p.t = t
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int{360, 800, 1280} {
				p.size(width, 900, scheme)
				p.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))`, nil)
				where := fmt.Sprintf("%s at %d px", scheme, width)
				if wide := p.text(`(() => { const most = document.documentElement.clientWidth;
					if (document.documentElement.scrollWidth <= most) return "";
					return [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > most + 1).map((e) => e.tagName + "." + e.className + " " + e.textContent.slice(0, 40)).slice(0, 5).join("; "); })()`); wide != "" {
					t.Errorf("%s: the page is wider than the window: %s", where, wide)
				}
				var pale []string
				p.eval(contrast, &pale)
				if len(pale) > 0 {
					t.Errorf("%s: contrast under 4.5: %s", where, strings.Join(pale, "; "))
				}
				p.eval(`scrollTo({top: 0, behavior: "instant"})`, nil)
				p.screenshot(fmt.Sprintf("%s-%d-top", scheme, width))
				for _, place := range []string{"listRuns", "createRun", "console", "errors"} {
					p.eval(`document.getElementById(`+quote(place)+`).scrollIntoView({behavior: "instant"})`, nil)
					p.screenshot(fmt.Sprintf("%s-%d-%s", scheme, width, place))
				}
			}
		}
		p.size(1280, 900, "light")
	})
	t.Run("works with the keyboard", func(t *testing.T) {
		p.t = t
		p.open(page) // the focus is at the start again
		p.until(`document.body.classList.contains("scripted")`)
		consoleByKeyboard(t, p, f.keys["full"])
		if diff := cmp.Diff([]string{}, pageFaults(t, p)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("loads runs", func(t *testing.T) {
		p.t = t
		p.tabTo("#load")
		p.press("Enter")
		p.until(`!document.getElementById("overview").hidden`)
		jobs := p.text(`document.querySelector("#jobs .bar").getAttribute("aria-label")`)
		alerts := p.text(`document.querySelector("#alerts-by-severity .legend").textContent`)
		// The account has the run of the insights and the run created above, with one job each.
		if jobs != "jobs: 2 queued" || alerts != "critical 1high 0medium 0low 0" {
			t.Errorf("jobs %q, alerts %q", jobs, alerts)
		}
		showAndMeasure(t, p, "console", "answered")
		showAndMeasure(t, p, "your-runs", "runs")
	})
	t.Run("shows results and cancels", func(t *testing.T) {
		p.t = t
		resultsInPage(t, p, at)
	})
	t.Run("creates brands and shows their rates", func(t *testing.T) {
		p.t = t
		brandsInPage(t, p, at)
	})
	t.Run("requests another media type", func(t *testing.T) {
		p.t = t
		mediaTypeInPage(t, p)
	})
	t.Run("creates and tests webhooks", func(t *testing.T) {
		p.t = t
		webhooksInPage(t, p)
	})
	t.Run("does not store the key", func(t *testing.T) {
		p.t = t
		kept := p.text(`JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href, history.state]) + document.documentElement.outerHTML`)
		if strings.Contains(kept, f.keys["full"]) {
			t.Error("the key is in the page, its address or its storage")
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range p.requests {
			if !strings.HasPrefix(r, origin+gateway.Base) && r != "about:blank" || strings.Contains(r, f.keys["full"]) {
				t.Errorf("the page requested %s", r)
			}
		}
		if len(p.wrongs) > 0 {
			t.Errorf("errors in the browser: %s", strings.Join(p.wrongs, "\n"))
		}
	})
	t.Run("is readable without JavaScript", func(t *testing.T) {
		p.t = t
		p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		p.open("about:blank") // otherwise the browser would only scroll
		p.open(page + "#overloaded")
		shown := p.text(`document.body.innerText`)
		for _, want := range []string{"Idempotent-Replayed", "too_many_jobs", "curl \"$BASE?path=/v1/me\"", "The console needs JavaScript"} {
			if !strings.Contains(shown, want) {
				t.Errorf("the document does not contain %s", want)
			}
		}
		if strings.Contains(shown, "Use ids of your account") {
			t.Error("the document shows the console, which needs JavaScript")
		}
		p.screenshot("document-1280-overloaded")
	})
}

// consoleByKeyboard creates a run with the keyboard only: it selects the route, enters the key, fills in ids and sends
// the request.
func consoleByKeyboard(t *testing.T, p *tab, key string) {
	t.Helper()
	p.press("Tab")
	if first := p.text(`document.activeElement.textContent`); first != "Skip to the content" {
		t.Errorf("Tab first moves the focus to %q", first)
	}
	p.tabTo("#createRun-curl")
	p.press("ArrowRight")
	if shown := p.text(`[...document.querySelectorAll("#createRun .samples pre")].filter((e) => e.offsetHeight).map((e) => e.className).join()`); shown != "go" {
		t.Errorf("after ArrowRight the sample in %q is shown, want go", shown)
	}
	p.tabTo("#createRun .try")
	p.press("Enter")
	p.until(`document.activeElement.id === "key"`) // no key was entered
	p.type_(key)
	p.tabTo("#own")
	p.press("Enter")
	p.until(`document.getElementById("status").textContent === "Ids filled in."`)
	if curl := p.text(`document.getElementById("curl").textContent`); !strings.Contains(curl, "Bearer $KEY") || !strings.Contains(curl, "golden-q1") {
		t.Errorf("the request as curl: %s", curl)
	}
	p.eval(`document.getElementById("body").focus()`, nil)
	p.tabTo("#request .main")
	p.press("Space")
	p.until(`document.getElementById("status").textContent.startsWith("202 ")`)
	var left struct{ Value, Max float64 }
	p.eval(`({Value: document.getElementById("left").value, Max: document.getElementById("left").max})`, &left)
	if left.Max != 100_000 || left.Value >= left.Max || left.Value < left.Max-100 {
		t.Errorf("the meter shows %v of %v requests", left.Value, left.Max)
	}
	if got := p.text(`document.getElementById("answer").textContent`); !strings.Contains(got, `"total_jobs": 1`) {
		t.Errorf("the response shown: %s", got)
	}
	if got := p.text(`document.getElementById("headers").textContent`); !strings.Contains(got, "x-request-id: req_") {
		t.Errorf("the headers shown: %s", got)
	}
}

// showAndMeasure shows a section in each scheme and width, for a screenshot, and measures the contrast.
func showAndMeasure(t *testing.T, p *tab, section, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int{360, 800, 1280} {
			p.size(width, 900, scheme)
			p.eval(`document.getElementById(`+quote(section)+`).scrollIntoView({behavior: "instant"})`, nil)
			p.screenshot(fmt.Sprintf("%s-%d-%s", scheme, width, name))
			var pale []string
			p.eval(contrast, &pale)
			if len(pale) > 0 {
				t.Errorf("%s at %d px: contrast under 4.5: %s", scheme, width, strings.Join(pale, "; "))
			}
		}
	}
}

// resultsInPage works one job of a run and shows it: its answer is text, whatever it contains. Then it cancels the run,
// which takes two presses.
func resultsInPage(t *testing.T, p *tab, at *target) {
	t.Helper()
	const answer = `<img src=x onerror=alert(1)> & "piu' comoda"`
	n := newNames()
	n.rename(at.send(t, n.wire(t, `POST /external-api-v1/v1/runs
Authorization: Bearer {key:full}
Content-Type: application/json
Idempotency-Key: {fresh:page}

{"model_ids":["golden/worked"],"question_ids":["golden-q1","golden-q2"],"repetitions":2,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`, at.keys)))
	n.rename(at.send(t, n.wire(t, `POST /worker/v1/claim
Authorization: Bearer {worker:main}
Content-Type: application/json

{"limit":2,"lease_seconds":900,"providers":null,"wait_seconds":10}`, at.keys)))
	item := `document.querySelector("#latest li")`
	p.eval(`document.getElementById("load").focus()`, nil)
	p.press("Enter")
	p.until(item + `.querySelector("code").textContent === "` + n.values["{run1}"] + `"`)
	if got := p.text(item + `.querySelector(".bar").getAttribute("aria-label")`); got != "jobs: 2 running, 2 queued" {
		t.Errorf("the bar of a claimed run: %q", got)
	}
	if got := p.text(`document.activeElement.id`); got != "load" {
		t.Errorf("after loading the runs, the focus is on %q", got)
	}
	settled := at.send(t, n.wire(t, `POST /worker/v1/settle
Authorization: Bearer {worker:main}
Content-Type: application/json

{"jobs":[{"id":"{job1}","attempt":1,"outcome":"completed","answer":{"text":`+quote(answer)+`,"citations":[{"url":"https://www.example.org/a","title":"<b>A</b>"},`+
		`{"url":"http://example.com/b","title":null}],"search_queries":["scarpe"],"model_version":null,"answered_at":"2026-01-02T03:04:05Z"}},`+
		`{"id":"{job2}","attempt":1,"outcome":"failed","error":{"code":"content_refused","message":"<i>no</i>"}}]}`, at.keys))
	if strings.Count(settled, `"settled"`) != 2 {
		t.Fatal(settled)
	}
	p.until(item + `.querySelector(".bar").getAttribute("aria-label") === "jobs: 1 completed, 2 queued, 1 failed"`) // without a press
	p.eval(item+`.querySelector("summary").click()`, nil)
	p.until(item + `.querySelectorAll(".results > li").length === 4`)
	if got := p.text(item + `.querySelector("blockquote").textContent`); got != answer {
		t.Errorf("the answer: %q", got)
	}
	var links []string
	p.eval(`[...`+item+`.querySelectorAll(".citations a")].map((a) => a.textContent + " " + a.href + " " + a.rel)`, &links)
	if diff := cmp.Diff([]string{"<b>A</b> https://www.example.org/a noopener noreferrer nofollow",
		"http://example.com/b http://example.com/b noopener noreferrer nofollow"}, links); diff != "" {
		t.Error(diff)
	}
	if got := p.text(item + `.querySelectorAll(".results > li")[1].textContent`); !strings.Contains(got, "content_refused<i>no</i>") {
		t.Errorf("the failed job: %q", got)
	}
	showAndMeasure(t, p, "your-runs", "results")
	p.eval(item+`.querySelector(".cancel").focus()`, nil)
	p.press("Space")
	if got := p.text(item + `.querySelector(".cancel").textContent`); got != "Click again to cancel" {
		t.Errorf("after one press: %q", got)
	}
	p.press("Space")
	p.until(item + `.querySelector("strong").textContent === "canceled"`)
	if got := p.text(item + `.querySelector(".bar").getAttribute("aria-label") + " " + ` + item + `.querySelector(".cancel").hidden`); got != "jobs: 1 completed, 1 failed, 2 canceled true" {
		t.Errorf("after the cancellation: %q", got)
	}
	if got := p.text(`document.activeElement.textContent`); got != "Results" {
		t.Errorf("after the cancellation, the focus is on %q", got)
	}
	if diff := cmp.Diff([]string{}, pageFaults(t, p)); diff != "" {
		t.Error(diff)
	}
}

// webhooksInPage creates a webhook, sends it a test and shows the delivery.
func webhooksInPage(t *testing.T, p *tab) {
	t.Helper()
	p.tabTo("#load-webhooks")
	p.press("Enter")
	p.until(`document.getElementById("webhooks-state").textContent === "The account has no webhooks."`)
	p.tabTo("#webhook-url")
	p.type_("https://page.golden.invalid/hook?a=<b>")
	p.eval(`(() => { // the next request is rejected
		const real = window.fetch, problem = { title: "Bad", detail: "No.", errors: [{ pointer: "#/body/url", detail: "must differ" }] };
		window.fetch = () => {
			window.fetch = real;
			return Promise.resolve(new Response(JSON.stringify(problem), { status: 400 }));
		};
	})()`, nil)
	p.press("Enter")
	p.until(`document.getElementById("webhooks-state").textContent === "Bad. No. #/body/url: must differ."`)
	p.eval(`(() => { // the next GET fails
		const real = window.fetch;
		window.fetch = (request) => {
			if (request.method !== "GET") return real(request);
			window.fetch = real;
			return Promise.reject(new TypeError("Failed to fetch"));
		};
	})()`, nil)
	p.press("Enter")
	p.until(`document.getElementById("webhooks-state").textContent === "The server cannot be reached; try again." && !document.getElementById("webhook-made").hidden`)
	p.eval(`document.getElementById("load-webhooks").click()`, nil)
	p.until(`document.querySelectorAll("#webhook-list > li").length === 1`)
	if got := p.text(`document.getElementById("webhook-secret").textContent`); !strings.HasPrefix(got, "whsec_") {
		t.Errorf("the secret shown: %q", got)
	}
	item := `document.querySelector("#webhook-list > li")`
	if got := p.text(item + `.querySelector("p").textContent`); got != "https://page.golden.invalid/hook?a=<b>enabled*" {
		t.Errorf("the webhook shown: %q", got)
	}
	p.eval(`(() => { // keep the timers of the deliveries
		const real = window.setTimeout;
		window.timers = [];
		window.setTimeout = (f, ms) => ms === 2000 ? timers.push(f) : real(f, ms);
	})()`, nil)
	var tests int // of two presses
	p.eval(`(() => {
		const real = window.fetch, test = `+item+`.querySelector("button");
		let tests = 0;
		window.fetch = (request) => { tests++; return real(request); };
		test.click();
		test.click();
		window.fetch = real;
		return tests;
	})()`, &tests)
	if tests != 1 {
		t.Errorf("two presses send %d tests", tests)
	}
	p.until(item + `.querySelector("details").open && ` + item + `.querySelector("details strong")?.textContent === "pending"`)
	if got := p.text(item + `.querySelector("details li").textContent`); !strings.HasSuffix(got, "webhook.testpending0 attempts") {
		t.Errorf("the delivery shown: %q", got)
	}
	showAndMeasure(t, p, "your-webhooks", "webhooks")
	for range 10 {
		p.until(`timers.length === 1`)
		p.eval(item+`.querySelector("details li").textContent = ""; timers.shift()()`, nil)
		p.until(item + `.querySelector("details strong")?.textContent === "pending"`) // read again
	}
	if got := p.text(`String(timers.length)`); got != "0" {
		t.Errorf("after 10 readings of a pending delivery, there are %s timers", got)
	}
	p.eval(`(() => { // opened again, then closed
		const details = `+item+`.querySelector("details");
		details.open = false;
		details.querySelector("li").textContent = "";
	})()`, nil)
	p.eval(item+`.querySelector("details").open = true`, nil)
	p.until(`timers.length === 1`)
	var closed int // the requests of a closed list
	p.eval(`(() => {
		const real = window.fetch;
		let closed = 0;
		`+item+`.querySelector("details").open = false;
		window.fetch = (request) => { closed++; return real(request); };
		timers.shift()();
		window.fetch = real;
		return closed;
	})()`, &closed)
	if closed != 0 {
		t.Error("the deliveries of a closed list are read again")
	}
	p.eval(`(() => { // the key may not read the webhooks
		const real = window.fetch;
		window.fetch = () => {
			window.fetch = real;
			return Promise.resolve(new Response(JSON.stringify({ title: "Forbidden", detail: "No." }), { status: 403 }));
		};
		document.getElementById("load-webhooks").click();
	})()`, nil)
	p.until(`document.getElementById("webhooks-state").textContent === "Forbidden. No."`)
	if got := p.text(`document.getElementById("webhook-list").textContent`); got != "" {
		t.Errorf("after an error, the page shows %q", got)
	}
	keyChangedInPage(t, p)
	if diff := cmp.Diff([]string{}, pageFaults(t, p)); diff != "" {
		t.Error(diff)
	}
}

// keyChangedInPage enters another key while the webhooks are read: what the first key loaded disappears.
func keyChangedInPage(t *testing.T, p *tab) {
	t.Helper()
	p.eval(`document.getElementById("load-webhooks").click()`, nil)
	p.until(`document.querySelectorAll("#webhook-list > li").length === 1 && !document.getElementById("overview").hidden`)
	p.eval(`(() => {
		const key = document.getElementById("key"), first = key.value;
		const enter = (value) => { key.value = value; key.dispatchEvent(new Event("input")); };
		document.getElementById("load-webhooks").click();
		enter("aiv_other");
		window.firstKey = () => enter(first);
	})()`, nil)
	const shown = `JSON.stringify([document.getElementById("webhook-list").textContent, document.getElementById("webhook-secret").textContent,
		document.getElementById("overview").hidden])`
	const none = `["","",true]`
	if got := p.text(shown); got != none {
		t.Errorf("after another key was entered, the page shows %s, want %s", got, none)
	}
	p.until(`document.getElementById("webhooks-state").textContent === "The key was changed; try again."`)
	if got := p.text(shown); got != none {
		t.Errorf("after the response to the first key, the page shows %s, want %s", got, none)
	}
	p.eval(`firstKey()`, nil)
}

// pageFaults returns violations of accessibility and of the content security policy: fields without labels, headings
// out of order, duplicate ids, broken links, inline scripts and styles.
func pageFaults(t *testing.T, p *tab) []string {
	t.Helper()
	faults := []string{}
	p.eval(`(() => {
		const faults = [];
		const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
		for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push("duplicate id: " + id);
		for (const e of document.querySelectorAll("input, select, textarea, meter")) if (!e.labels.length) faults.push("no label: " + e.id);
		for (const e of document.querySelectorAll("button, a")) if (!e.textContent.trim()) faults.push("no text: " + e.outerHTML);
		for (const a of document.querySelectorAll("a[href^='#']")) if (!document.getElementById(a.hash.slice(1))) faults.push("broken link: " + a.hash);
		for (const e of document.querySelectorAll("[aria-labelledby]")) if (!document.getElementById(e.getAttribute("aria-labelledby"))) faults.push("no label: " + e.id);
		for (const e of document.querySelectorAll("[style], [onclick], script:not([src]), style")) faults.push("inline: " + e.outerHTML.slice(0, 80));
		let level = 0;
		for (const h of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
			const n = Number(h.tagName[1]);
			if (n > level + 1 || n === 1 && level) faults.push("heading out of order: " + h.textContent);
			level = n;
		}
		if (!document.documentElement.lang || !document.title) faults.push("no language or no title");
		return faults.filter((f) => !f.startsWith("inline: <i class="));
	})()`, &faults)
	slices.Sort(faults)
	return slices.Compact(faults)
}

// contrast returns the texts whose contrast with their background is below 4.5:1 [WCAG 2.2, 1.4.3].
const contrast = `(() => {
	const channels = (c) => { const m = c.match(/[\d.]+/g).map(Number); return { rgb: m.slice(0, 3), alpha: m[3] ?? 1 }; };
	const luminance = (rgb) => { const [r, g, b] = rgb.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = channels(getComputedStyle(e).backgroundColor); if (c.alpha === 1) return c.rgb; } return [255, 255, 255]; };
	const pale = new Set();
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || !e.checkVisibility({ visibilityProperty: true }) || e.closest(":disabled, noscript")) continue;
		const [a, b] = [luminance(channels(getComputedStyle(e).color).rgb), luminance(ground(e))].sort((x, y) => y - x);
		const ratio = (a + 0.05) / (b + 0.05);
		if (ratio < 4.5) pale.add(ratio.toFixed(2) + " " + e.tagName + "." + e.className + " " + walk.currentNode.data.trim().slice(0, 30));
	}
	return [...pale];
})()`
