//go:build browser

package gateway

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pageAddress returns the origin of a target and the address of its page.
func pageAddress(t *testing.T, at *target) (origin, page string) {
	t.Helper()
	conn, err := at.dial(t.Context())
	must(t, err)
	defer conn.Close()
	origin = "http://" + conn.RemoteAddr().String()
	return origin, origin + Base + "/docs"
}

// TestPageInABrowser tests the reference page in Chromium.
func TestPageInABrowser(t *testing.T) {
	f := newFixture(t)
	at := f.target(t)
	f.serveWorkers(t, at)
	origin, page := pageAddress(t, at)
	p := newTab(t)
	p.size(1280, "light")
	p.load(page)

	p.run(t, "is well formed", func(t *testing.T) {
		p.isFaultless("the page", "page_faults")
		for _, c := range openAPI(t).codes() {
			text := p.text(`document.getElementById(` + quote(c.code) + `)?.querySelector("h3")?.textContent ?? ""`)
			if !strings.HasSuffix(text, c.code) {
				t.Errorf("the type of the problem %s is not the id of its section: %q", c.code, text)
			}
		}
		p.inEachWindow([]int{360, 800, 1280}, func(where string) { p.isFaultless(where, "wide") })
	})
	p.run(t, "creates a run by the keyboard", func(t *testing.T) {
		p.load(page) // the focus is at the start again
		consoleByKeyboard(t, p, f.keys["full"])
		p.tabTo("#load")
		p.press("Enter")
		p.until(`!document.getElementById("overview").hidden`)
		// The account has the run of the insights and the run created above, with one job each.
		p.shows("the bar", `document.querySelector("#jobs .bar").getAttribute("aria-label")`, "jobs: 2 queued")
		p.shows("alerts", `document.querySelector("#alerts-by-severity .legend").textContent`, "critical 1high 0medium 0low 0")
	})
	p.run(t, "shows results and cancels", func(t *testing.T) { f.resultsInPage(t, p, at) })
	p.run(t, "creates brands and shows their rates", func(t *testing.T) { f.brandsInPage(t, p, at) })
	p.run(t, "requests another media type", func(t *testing.T) { mediaTypeInPage(t, p) })
	p.run(t, "creates and tests webhooks", func(t *testing.T) { webhooksInPage(p) })
	p.run(t, "fits and has contrast when everything is shown", func(t *testing.T) {
		p.isFaultless("the page", "page_faults")
		p.inEachWindow([]int{360, 800, 1280}, func(where string) { p.isFaultless(where, "contrast") })
	})
	p.run(t, "forgets what another key loaded", func(t *testing.T) { keyChangedInPage(p) })
	p.run(t, "does not store the key", func(t *testing.T) {
		p.keepsSecret(f.keys["full"])
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, r := range p.requests {
			if !strings.HasPrefix(r, origin+Base) && r != "about:blank" || strings.Contains(r, f.keys["full"]) {
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

// settleTwo settles the jobs, each with an outcome and what belongs to it.
func settleTwo(t *testing.T, at *target, n *names, first, second string) {
	t.Helper()
	settled := at.work(t, n, "settle", `{"jobs":[{"id":"{job1}","attempt":1,`+first+`},{"id":"{job2}","attempt":1,`+second+`}]}`)
	if strings.Count(settled, `"settled"`) != 2 {
		t.Fatal(settled)
	}
}

// resultsInPage works one job of a run and shows it: its answer is text, whatever it contains. Then it cancels the run,
// which takes two presses.
func (f *fixture) resultsInPage(t *testing.T, p *tab, at *target) {
	t.Helper()
	const answer = `<img src=x onerror=alert(1)> & "piu' comoda"`
	n, _ := f.claimTwo(t, at, "2")
	item := `document.querySelector("#latest li")`
	bar := item + `.querySelector(".bar").getAttribute("aria-label")`
	p.eval(`document.getElementById("load").focus()`, nil)
	p.press("Enter")
	p.until(item + `.querySelector("code").textContent === "` + n.values["{run1}"] + `"`)
	p.shows("the bar of a claimed run", bar, "jobs: 2 running, 2 queued")
	p.shows("after loading the runs, the focus is on", `document.activeElement.id`, "load")
	settleTwo(t, at, n,
		`"outcome":"completed","answer":{"text":`+quote(answer)+`,"search_queries":["scarpe"],"model_version":null,`+
			`"citations":[{"url":"https://www.example.org/a","title":"<b>A</b>"},{"url":"http://example.com/b","title":null}],`+
			`"answered_at":"2026-01-02T03:04:05Z"}`,
		`"outcome":"failed","error":{"code":"content_refused","message":"<i>no</i>"}`)
	p.until(bar + ` === "jobs: 1 completed, 2 queued, 1 failed"`) // without a press
	p.eval(item+`.querySelector("summary").click()`, nil)
	p.until(item + `.querySelectorAll(".results > li").length === 4`)
	p.shows("the answer", item+`.querySelector("blockquote").textContent`, answer)
	p.shows("links", `[...`+item+`.querySelectorAll(".citations a")].map((a) => [a.textContent, a.href, a.rel].join()).join()`,
		"<b>A</b>,https://www.example.org/a,noopener noreferrer nofollow,"+
			"http://example.com/b,http://example.com/b,noopener noreferrer nofollow")
	p.showsPart("the failed job", item+`.querySelectorAll(".results > li")[1].textContent`, "content_refused<i>no</i>")
	p.eval(item+`.querySelector(".cancel").focus()`, nil)
	p.press("Space")
	p.shows("after one press", item+`.querySelector(".cancel").textContent`, "Click again to cancel")
	p.press("Space")
	p.until(item + `.querySelector("strong").textContent === "canceled"`)
	p.shows("after the cancellation", bar+` + " " + `+item+`.querySelector(".cancel").hidden`,
		"jobs: 1 completed, 1 failed, 2 canceled true")
}

// brandsInPage creates a brand, works a run, and shows how many of its answers mention and cite the brand.
func (f *fixture) brandsInPage(t *testing.T, p *tab, at *target) {
	t.Helper()
	state := func(text string) {
		t.Helper()
		p.until(`document.getElementById("brands-state").textContent === ` + quote(text))
	}
	p.tabTo("#load-brands")
	p.press("Enter")
	state("The account has no active brands.")
	for _, field := range [][2]string{{"name", "Kovalt <b>"}, {"aliases", "Kovalt, Kovalt Run,"}, {"domains", "kovalt.example"}} {
		p.tabTo("#brand-" + field[0])
		p.type_(field[1])
	}
	p.press("Enter")
	// The results above were counted without brands.
	state("Kovalt <b> is created. 0 answers are counted; 2 pending, 1 to be counted again. Load again for their numbers.")
	item := `document.querySelector("#brand-list > li")`
	p.shows("a brand without answers", item+`.textContent`,
		"Kovalt <b>ownKovalt, Kovalt Run, kovalt.examplementioned in: no answers are countedcited in: no sources are known")
	p.answerNext("POST", `Promise.resolve(new Response(JSON.stringify(
		{ title: "Taken", detail: "No.", errors: [{ pointer: "#/body/name", detail: "must differ" }] }), { status: 409 }))`)
	p.eval(`document.getElementById("brand-name").focus()`, nil)
	p.type_("Kovalt")
	p.press("Enter")
	state("Taken. No. #/body/name: must differ.")

	n, _ := f.claimTwo(t, at, "1")
	settleTwo(t, at, n,
		`"outcome":"completed","answer":{"text":"Kovalt.","citations":[{"url":"https://kovalt.example/","title":null}],`+
			`"search_queries":[],"model_version":null,"answered_at":"2026-01-02T03:04:05Z"}`,
		`"outcome":"completed","answer":{"text":"None.","citations":[],"search_queries":[],"model_version":null,`+
			`"answered_at":"2026-01-02T03:04:05Z","searched":false}`)
	p.eval(`document.getElementById("load-brands").click()`, nil)
	state("2 answers are counted; 2 pending, 1 to be counted again. Load again for their numbers.")
	p.shows("the rates", `[...`+item+`.querySelectorAll("p")].slice(1).map((e) => e.textContent).join("\n")`,
		"mentioned in 1 of 2 answers: 50% (95% interval 5.5% to 94.5%; few answers)\n"+
			"cited in 1 of 1 answers: 100% (95% interval 20.7% to 100%; few answers)")
	p.shows("the interval begins at and the value is at",
		item+`.querySelector(".limits").style.left + " " + `+item+`.querySelector(".point").style.left`, "5.46% 50%")
}

// mediaTypeInPage reads metrics as CSV in the console.
func mediaTypeInPage(t *testing.T, p *tab) {
	t.Helper()
	choose := func(id, value string) {
		t.Helper()
		p.eval(`(() => {
			const e = document.getElementById(`+quote(id)+`);
			e.value = `+quote(value)+`;
			for (const type of ["input", "change"]) e.dispatchEvent(new Event(type, { bubbles: true }));
		})()`, nil)
	}
	choose("route", "GET /v1/runs")
	p.shows("the types of a route with one are hidden", `String(document.querySelector("#request .types").hidden)`, "true")
	choose("route", "GET /v1/metrics")
	var types []string
	p.eval(`[...document.getElementById("accept").options].map((o) => o.value)`, &types)
	if diff := cmp.Diff([]string{"application/json", "text/csv"}, types); diff != "" {
		t.Errorf("media types (-want +got):\n%s", diff)
	}
	choose("accept", "text/csv")
	choose("path", "/v1/metrics")
	p.showsPart("the request for CSV", `document.getElementById("curl").textContent`, "-H 'Accept: text/csv'")
	p.eval(`document.querySelector("#request .main").click()`, nil)
	p.until(`document.getElementById("answer").textContent.startsWith("brand_id,brand_name,kind,mentions,")`)
	p.showsPart("the headers shown", `document.getElementById("headers").textContent`, "content-type: text/csv; charset=utf-8; header=present")
}

// webhooksInPage creates a webhook, sends it a test and shows the delivery.
func webhooksInPage(p *tab) {
	p.t.Helper()
	state := func(text string) {
		p.t.Helper()
		p.until(`document.getElementById("webhooks-state").textContent === ` + quote(text))
	}
	p.tabTo("#load-webhooks")
	p.press("Enter")
	state("The account has no webhooks.")
	p.tabTo("#webhook-url")
	p.type_("https://page.golden.invalid/hook?a=<b>")
	p.answerNext("GET", disconnected)
	p.press("Enter")
	state("The server cannot be reached; try again.")
	p.showsPart("the secret shown", `document.getElementById("webhook-secret").textContent`, "whsec_") // all the same
	p.eval(`document.getElementById("load-webhooks").click()`, nil)
	p.until(`document.querySelectorAll("#webhook-list > li").length === 1`)
	item := `document.querySelector("#webhook-list > li")`
	p.shows("the webhook shown", item+`.querySelector("p").textContent`, "https://page.golden.invalid/hook?a=<b>enabled*")
	p.eval(item+`.querySelector("button").click()`, nil)
	p.until(item + `.querySelector("details").open && ` + item + `.querySelector("details strong")?.textContent === "pending"`)
	p.showsPart("the delivery shown", item+`.querySelector("details li").textContent`, "webhook.testpending0 attempts")
}

// keyChangedInPage enters another key while the webhooks are read: what the first key loaded disappears.
func keyChangedInPage(p *tab) {
	p.t.Helper()
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
