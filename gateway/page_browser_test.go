//go:build browser

package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aiv/gateway"
)

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
	p.load(page)

	p.run(t, "is well formed", func(t *testing.T) {
		p.isFaultless("the page", pageFaults)
		for _, c := range openAPI(t).codes() {
			var text string
			p.eval(`document.getElementById(`+quote(c.code)+`)?.querySelector("h3")?.textContent ?? ""`, &text)
			if !strings.HasSuffix(text, c.code) {
				t.Errorf("the type of the problem %s is not the id of its section: %q", c.code, text)
			}
		}
	})
	p.run(t, "fits and has contrast", func(t *testing.T) {
		p.inEachWindow([]int{360, 800, 1280}, func(where string) {
			p.isFaultless(where, wide)
			p.isFaultless(where, contrast)
		})
	})
	p.run(t, "works with the keyboard", func(t *testing.T) {
		p.load(page) // the focus is at the start again
		consoleByKeyboard(t, p, f.keys["full"])
		p.isFaultless("the page", pageFaults)
	})
	p.run(t, "loads runs", func(t *testing.T) {
		p.tabTo("#load")
		p.press("Enter")
		p.until(`!document.getElementById("overview").hidden`)
		// The account has the run of the insights and the run created above, with one job each.
		p.shows("the bar", `document.querySelector("#jobs .bar").getAttribute("aria-label")`, "jobs: 2 queued")
		p.shows("alerts", `document.querySelector("#alerts-by-severity .legend").textContent`,
			"critical 1high 0medium 0low 0")
		hasContrast(p)
	})
	p.run(t, "shows results and cancels", func(t *testing.T) { resultsInPage(t, p, at) })
	p.run(t, "creates brands and shows their rates", func(t *testing.T) { brandsInPage(t, p, at) })
	p.run(t, "requests another media type", func(t *testing.T) { mediaTypeInPage(t, p) })
	p.run(t, "creates and tests webhooks", func(t *testing.T) { webhooksInPage(t, p) })
	p.run(t, "does not store the key", func(t *testing.T) {
		p.keepsSecret(f.keys["full"])
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
	p.run(t, "is readable without JavaScript", func(t *testing.T) {
		p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true}, nil)
		p.openAnew(page + "#overloaded")
		const shown = `document.body.innerText`
		p.showsPart("the document", shown,
			"Idempotent-Replayed", "too_many_jobs", `curl "$BASE?path=/v1/me"`, "The console needs JavaScript")
		if strings.Contains(p.text(shown), "Use ids of your account") {
			t.Error("the document shows the console, which needs JavaScript")
		}
	})
}

// consoleByKeyboard creates a run with the keyboard only: it selects the route, enters the key, fills in ids and sends
// the request.
func consoleByKeyboard(t *testing.T, p *tab, key string) {
	t.Helper()
	p.press("Tab")
	p.shows("Tab first moves the focus to", `document.activeElement.textContent`, "Skip to the content")
	p.tabTo("#createRun-curl")
	p.press("ArrowRight")
	p.shows("the sample after ArrowRight", `[...document.querySelectorAll("#createRun .samples pre")]
		.filter((e) => e.offsetHeight).map((e) => e.className).join()`, "go")
	p.tabTo("#createRun .try")
	p.press("Enter")
	p.until(`document.activeElement.id === "key"`) // no key was entered
	p.type_(key)
	p.tabTo("#own")
	p.press("Enter")
	p.until(`document.getElementById("status").textContent === "Ids filled in."`)
	p.showsPart("the request as curl", `document.getElementById("curl").textContent`, "Bearer $KEY", "golden-q1")
	p.eval(`document.getElementById("body").focus()`, nil)
	p.tabTo("#request .main")
	p.press("Space")
	p.until(`document.getElementById("status").textContent.startsWith("202 ")`)
	var left struct{ Value, Max float64 }
	p.eval(`({Value: document.getElementById("left").value, Max: document.getElementById("left").max})`, &left)
	if left.Max != 100_000 || left.Value >= left.Max || left.Value < left.Max-100 {
		t.Errorf("the meter shows %v of %v requests", left.Value, left.Max)
	}
	p.showsPart("the response shown", `document.getElementById("answer").textContent`, `"total_jobs": 1`)
	p.showsPart("the headers shown", `document.getElementById("headers").textContent`, "x-request-id: req_")
}

// hasContrast measures the contrast of what the page shows.
func hasContrast(p *tab) {
	p.t.Helper()
	p.inEachWindow([]int{360, 800, 1280}, func(where string) { p.isFaultless(where, contrast) })
}

// wide returns what is wider than the window.
const wide = `(() => {
	const most = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth <= most) return [];
	const reaches = (e) => e.getBoundingClientRect().right > most + 1;
	return [...document.querySelectorAll("main *")].filter(reaches).map((e) => e.tagName + "." + e.className).slice(0, 5);
})()`

// claimTwo creates a run and claims two of its jobs, {job1} and {job2}.
func claimTwo(t *testing.T, at *target, repetitions int) *names {
	t.Helper()
	n := newNames()
	n.rename(at.send(t, n.wire(t, `POST /external-api-v1/v1/runs
Authorization: Bearer {key:full}
Content-Type: application/json
Idempotency-Key: {fresh:page}

{"model_ids":["golden/worked"],"question_ids":["golden-q1","golden-q2"],"repetitions":`+fmt.Sprint(repetitions)+`,`+
		`"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`, at.keys)))
	n.rename(at.send(t, n.wire(t, `POST /worker/v1/claim
Authorization: Bearer {worker:main}
Content-Type: application/json

{"limit":2,"lease_seconds":900,"providers":null,"wait_seconds":10}`, at.keys)))
	return n
}

// settleTwo settles the jobs, each with an outcome and what belongs to it.
func settleTwo(t *testing.T, at *target, n *names, first, second string) {
	t.Helper()
	settled := at.send(t, n.wire(t, `POST /worker/v1/settle
Authorization: Bearer {worker:main}
Content-Type: application/json

{"jobs":[{"id":"{job1}","attempt":1,`+first+`},{"id":"{job2}","attempt":1,`+second+`}]}`, at.keys))
	if strings.Count(settled, `"settled"`) != 2 {
		t.Fatal(settled)
	}
}

// resultsInPage works one job of a run and shows it: its answer is text, whatever it contains. Then it cancels the run,
// which takes two presses.
func resultsInPage(t *testing.T, p *tab, at *target) {
	t.Helper()
	const answer = `<img src=x onerror=alert(1)> & "piu' comoda"`
	n := claimTwo(t, at, 2)
	item := `document.querySelector("#latest li")`
	p.eval(`document.getElementById("load").focus()`, nil)
	p.press("Enter")
	p.until(item + `.querySelector("code").textContent === "` + n.values["{run1}"] + `"`)
	p.shows("the bar of a claimed run",
		item+`.querySelector(".bar").getAttribute("aria-label")`, "jobs: 2 running, 2 queued")
	p.shows("after loading the runs, the focus is on", `document.activeElement.id`, "load")
	settleTwo(t, at, n,
		`"outcome":"completed","answer":{"text":`+quote(answer)+`,"search_queries":["scarpe"],"model_version":null,`+
			`"citations":[{"url":"https://www.example.org/a","title":"<b>A</b>"},{"url":"http://example.com/b","title":null}],`+
			`"answered_at":"2026-01-02T03:04:05Z"}`,
		`"outcome":"failed","error":{"code":"content_refused","message":"<i>no</i>"}`)
	p.until(item + `.querySelector(".bar").getAttribute("aria-label") === "jobs: 1 completed, 2 queued, 1 failed"`) // without a press
	p.eval(item+`.querySelector("summary").click()`, nil)
	p.until(item + `.querySelectorAll(".results > li").length === 4`)
	p.shows("the answer", item+`.querySelector("blockquote").textContent`, answer)
	var links []string
	p.eval(`[...`+item+`.querySelectorAll(".citations a")].map((a) => a.textContent + " " + a.href + " " + a.rel)`, &links)
	if diff := cmp.Diff([]string{"<b>A</b> https://www.example.org/a noopener noreferrer nofollow",
		"http://example.com/b http://example.com/b noopener noreferrer nofollow"}, links); diff != "" {
		t.Error(diff)
	}
	p.showsPart("the failed job",
		item+`.querySelectorAll(".results > li")[1].textContent`, "content_refused<i>no</i>")
	hasContrast(p)
	p.eval(item+`.querySelector(".cancel").focus()`, nil)
	p.press("Space")
	p.shows("after one press", item+`.querySelector(".cancel").textContent`, "Click again to cancel")
	p.press("Space")
	p.until(item + `.querySelector("strong").textContent === "canceled"`)
	p.shows("after the cancellation",
		item+`.querySelector(".bar").getAttribute("aria-label") + " " + `+item+`.querySelector(".cancel").hidden`,
		"jobs: 1 completed, 1 failed, 2 canceled true")
	p.shows("after the cancellation, the focus is on", `document.activeElement.textContent`, "Results")
	p.isFaultless("the page", pageFaults)
}

// webhooksInPage creates a webhook, sends it a test and shows the delivery.
func webhooksInPage(t *testing.T, p *tab) {
	t.Helper()
	p.tabTo("#load-webhooks")
	p.press("Enter")
	p.until(`document.getElementById("webhooks-state").textContent === "The account has no webhooks."`)
	p.tabTo("#webhook-url")
	p.type_("https://page.golden.invalid/hook?a=<b>")
	p.answerNext("POST", rejected(400,
		`{ title: "Bad", detail: "No.", errors: [{ pointer: "#/body/url", detail: "must differ" }] }`))
	p.press("Enter")
	p.until(`document.getElementById("webhooks-state").textContent === "Bad. No. #/body/url: must differ."`)
	p.answerNext("GET", disconnected)
	p.press("Enter")
	p.until(`document.getElementById("webhooks-state").textContent === "The server cannot be reached; try again." && !document.getElementById("webhook-made").hidden`)
	p.eval(`document.getElementById("load-webhooks").click()`, nil)
	p.until(`document.querySelectorAll("#webhook-list > li").length === 1`)
	p.showsPart("the secret shown", `document.getElementById("webhook-secret").textContent`, "whsec_")
	item := `document.querySelector("#webhook-list > li")`
	p.shows("the webhook shown",
		item+`.querySelector("p").textContent`, "https://page.golden.invalid/hook?a=<b>enabled*")
	p.eval(`(() => { // keep the timers of the deliveries
		const real = window.setTimeout;
		window.timers = [];
		window.setTimeout = (f, ms) => ms === 2000 ? timers.push(f) : real(f, ms);
	})()`, nil)
	press := item + `.querySelector("button").click();`
	if n := p.requestsOf(press + press); n != 1 {
		t.Errorf("two presses send %d tests", n)
	}
	p.until(item + `.querySelector("details").open && ` + item + `.querySelector("details strong")?.textContent === "pending"`)
	p.showsPart("the delivery shown",
		item+`.querySelector("details li").textContent`, "webhook.testpending0 attempts")
	hasContrast(p)
	for range 10 {
		p.until(`timers.length === 1`)
		p.eval(item+`.querySelector("details li").textContent = ""; timers.shift()()`, nil)
		p.until(item + `.querySelector("details strong")?.textContent === "pending"`) // read again
	}
	p.shows("the timers after 10 readings of a pending delivery", `String(timers.length)`, "0")
	p.eval(`(() => { // opened again, then closed
		const details = `+item+`.querySelector("details");
		details.open = false;
		details.querySelector("li").textContent = "";
	})()`, nil)
	p.eval(item+`.querySelector("details").open = true`, nil)
	p.until(`timers.length === 1`)
	if n := p.requestsOf(item + `.querySelector("details").open = false; timers.shift()();`); n != 0 {
		t.Error("the deliveries of a closed list are read again")
	}
	p.answerNext("GET", rejected(403, `{ title: "Forbidden", detail: "No." }`)) // the key may not read the webhooks
	p.eval(`document.getElementById("load-webhooks").click()`, nil)
	p.until(`document.getElementById("webhooks-state").textContent === "Forbidden. No."`)
	p.shows("after an error, the page shows", `document.getElementById("webhook-list").textContent`, "")
	keyChangedInPage(t, p)
	p.isFaultless("the page", pageFaults)
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
	p.shows("after another key was entered", shown, none)
	p.until(`document.getElementById("webhooks-state").textContent === "The key was changed; try again."`)
	p.shows("after the response to the first key", shown, none)
	p.eval(`firstKey()`, nil)
}

// pageFaults returns violations of accessibility and of the content security policy: fields without labels, headings
// out of order, duplicate ids, broken links, inline scripts and styles.
const pageFaults = `(() => {
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
})()`

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
