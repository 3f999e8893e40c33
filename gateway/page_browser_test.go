//go:build browser

package gateway

import (
	"strings"
	"testing"
)

// TestPageInABrowser tests the reference page in Chromium.
func TestPageInABrowser(t *testing.T) {
	f := newFixture(t)
	at := f.target(t)
	f.serveWorkers(t, at)
	conn, err := at.dial(t.Context())
	must(t, err)
	origin, key := "http://"+conn.RemoteAddr().String(), f.keys["full"]
	must(t, conn.Close())
	page := origin + Base + "/docs"
	p := newTab(t)
	p.size(1280, "light")
	p.load(page)
	p.run(t, "is well formed", func(t *testing.T) {
		p.isFaultless("the page", "page_faults")
		for _, c := range openAPI(t).codes() {
			p.shows("the section of the problem "+c.code, `String($("#`+c.code+`").querySelector("h3").textContent.endsWith("`+c.code+`"))`, "true")
		}
		p.inEachWindow([]int{360, 800, 1280}, func(where string) { p.isFaultless(where, "wide") })
	})
	p.run(t, "creates a run by the keyboard", func(t *testing.T) {
		p.load(page) // the focus is at the start again
		p.press("Tab")
		p.shows("Tab first moves the focus to", `document.activeElement.textContent`, "Skip to the content")
		p.tabTo("#createRun-curl")
		p.press("ArrowRight")
		p.shows("the sample after ArrowRight",
			`$$("#createRun .samples pre").filter((e) => e.offsetHeight).map((e) => e.className).join()`, "go")
		p.tabTo("#createRun .try")
		p.press("Enter")
		p.until(`document.activeElement.id === "key"`) // no key was entered
		p.type_(key)
		p.tabTo("#own")
		p.press("Enter")
		p.until(`$("#status").textContent === "Ids filled in."`)
		p.showsPart("the request as curl", `$("#curl").textContent`, "Bearer $KEY", "golden-q1")
		p.eval(`$("#body").focus()`, nil)
		p.tabTo("#request .main")
		p.press("Space")
		p.until(`$("#status").textContent.startsWith("202 ")`)
		p.shows("the meter", `String($("#left").max === 100000 && $("#left").value < 100000 && $("#left").value > 99900)`, "true")
		p.showsPart("the response shown", `$("#headers").textContent + $("#answer").textContent`, `"total_jobs": 1`, "x-request-id: req_")
		p.tabTo("#load")
		p.press("Enter")
		p.until(`!$("#overview").hidden`)
		// The account has the run of the insights and the run created above, with one job each.
		p.shows("the bar", `$("#jobs .bar").getAttribute("aria-label")`, "jobs: 2 queued")
		p.shows("alerts", `$("#alerts-by-severity .legend").textContent`, "critical 1high 0medium 0low 0")
	})
	// An answer is text, whatever it contains. To cancel a run takes two presses.
	p.run(t, "shows results and cancels", func(t *testing.T) {
		const answer = `<img src=x onerror=alert(1)> & "piu' comoda"`
		n, _ := f.claimTwo(t, at, "2")
		const bar = `$("#latest li .bar").getAttribute("aria-label")`
		p.eval(`$("#load").focus()`, nil)
		p.press("Enter")
		p.until(`$("#latest li code").textContent === ` + quote(n.values["{run1}"]))
		p.shows("the bar of a claimed run", bar, "jobs: 2 running, 2 queued")
		p.shows("after loading the runs, the focus is on", `document.activeElement.id`, "load")
		at.settleTwo(t, n, `"outcome":"completed","answer":{"text":`+quote(answer)+`,"search_queries":["scarpe"],"model_version":null,`+
			`"citations":[{"url":"https://www.example.org/a","title":"<b>A</b>"},{"url":"http://example.com/b","title":null}],`+
			`"answered_at":"2026-01-02T03:04:05Z"}`,
			`"outcome":"failed","error":{"code":"content_refused","message":"<i>no</i>"}`)
		p.until(bar + ` === "jobs: 1 completed, 2 queued, 1 failed"`) // without a press
		p.eval(`$("#latest li summary").click()`, nil)
		p.until(`$$("#latest li:first-child .results > li").length === 4`)
		p.shows("the answer", `$("#latest blockquote").textContent`, answer)
		p.shows("links", `$$("#latest .citations a").map((a) => [a.textContent, a.href, a.rel].join()).join()`,
			"<b>A</b>,https://www.example.org/a,noopener noreferrer nofollow,"+
				"http://example.com/b,http://example.com/b,noopener noreferrer nofollow")
		p.showsPart("the failed job", `$$("#latest .results > li")[1].textContent`, "content_refused<i>no</i>")
		p.eval(`$("#latest .cancel").focus()`, nil)
		p.press("Space")
		p.shows("after one press", `$("#latest .cancel").textContent`, "Click again to cancel")
		p.press("Space")
		p.until(`$("#latest li strong").textContent === "canceled"`)
		p.shows("after the cancellation", bar+` + " " + $("#latest .cancel").hidden`, "jobs: 1 completed, 1 failed, 2 canceled true")
	})
	p.run(t, "creates brands and shows their rates", func(t *testing.T) {
		p.tabTo("#load-brands")
		p.press("Enter")
		p.until(`$("#brands-state").textContent === "The account has no active brands."`)
		for _, field := range [][2]string{{"name", "Kovalt <b>"}, {"aliases", "Kovalt, Kovalt Run,"}, {"domains", "kovalt.example"}} {
			p.tabTo("#brand-" + field[0])
			p.type_(field[1])
		}
		p.press("Enter") // the results above were counted without brands
		p.until(`$("#brands-state").textContent === "Kovalt <b> is created. 0 answers are counted; 2 pending, 1 to be counted again. ` +
			`Load again for their numbers."`)
		p.shows("a brand without answers", `$("#brand-list > li").textContent`,
			"Kovalt <b>ownKovalt, Kovalt Run, kovalt.examplementioned in: no answers are countedcited in: no sources are known")
		n, _ := f.claimTwo(t, at, "1")
		at.settleTwo(t, n, `"outcome":"completed","answer":{"text":"Kovalt.","citations":[{"url":"https://kovalt.example/","title":null}],`+
			`"search_queries":[],"model_version":null,"answered_at":"2026-01-02T03:04:05Z"}`,
			`"outcome":"completed","answer":{"text":"None.","citations":[],"search_queries":[],"model_version":null,`+
				`"answered_at":"2026-01-02T03:04:05Z","searched":false}`)
		p.eval(`$("#load-brands").click()`, nil)
		p.until(`$("#brands-state").textContent.startsWith("2 answers are counted;")`)
		p.shows("the rates", `$$("#brand-list > li p").slice(1).map((e) => e.textContent).join("\n")`,
			"mentioned in 1 of 2 answers: 50% (95% interval 5.5% to 94.5%; few answers)\n"+
				"cited in 1 of 1 answers: 100% (95% interval 20.7% to 100%; few answers)")
		p.shows("the interval begins at and the value is at",
			`$("#brand-list .limits").style.left + " " + $("#brand-list .point").style.left`, "5.46% 50%")
	})
	p.run(t, "requests another media type", func(t *testing.T) {
		p.eval(`for (const [id, value] of [["route", "GET /v1/metrics"], ["accept", "text/csv"], ["path", "/v1/metrics"]]) {
			$("#" + id).value = value;
			for (const type of ["input", "change"]) $("#" + id).dispatchEvent(new Event(type, { bubbles: true }));
		}`, nil)
		p.showsPart("the request for CSV", `$("#curl").textContent`, "-H 'Accept: text/csv'")
		p.eval(`$("#request .main").click()`, nil)
		p.until(`$("#answer").textContent.startsWith("brand_id,brand_name,kind,mentions,")`)
	})
	p.run(t, "creates and tests webhooks", func(t *testing.T) {
		p.tabTo("#load-webhooks")
		p.press("Enter")
		p.until(`$("#webhooks-state").textContent === "The account has no webhooks."`)
		p.tabTo("#webhook-url")
		p.type_("https://page.golden.invalid/hook?a=<b>")
		p.press("Enter")
		p.until(`$$("#webhook-list > li").length === 1`)
		p.showsPart("the secret shown", `$("#webhook-secret").textContent`, "whsec_")
		p.shows("the webhook shown", `$("#webhook-list > li p").textContent`, "https://page.golden.invalid/hook?a=<b>enabled*")
		p.eval(`$("#webhook-list button").click()`, nil)
		p.until(`$("#webhook-list details").open && $("#webhook-list details strong")?.textContent === "pending"`)
		p.showsPart("the delivery shown", `$("#webhook-list details li").textContent`, "webhook.testpending0 attempts")
	})
	p.run(t, "fits and has contrast when everything is shown", func(t *testing.T) {
		p.isFaultless("the page", "page_faults")
		p.inEachWindow([]int{360, 800, 1280}, func(where string) { p.isFaultless(where, "contrast") })
	})
	// Another key is entered while the webhooks are read: what the first key loaded disappears.
	p.run(t, "forgets what another key loaded", func(t *testing.T) {
		p.eval(`const key = $("#key"), first = key.value;
			const enter = (value) => { key.value = value; key.dispatchEvent(new Event("input")); };
			$("#load-webhooks").click();
			enter("aiv_other");
			window.firstKey = () => enter(first)`, nil)
		const shown = `JSON.stringify([$("#webhook-list").textContent, $("#webhook-secret").textContent, $("#overview").hidden])`
		p.shows("after another key was entered", shown, `["","",true]`)
		p.until(`$("#webhooks-state").textContent === "The key was changed; try again."`)
		p.shows("after the response to the first key", shown, `["","",true]`)
		p.eval(`firstKey()`, nil)
	})
	p.run(t, "does not store the key", func(t *testing.T) {
		p.keepsSecret(key)
		p.isQuiet(origin+Base, "")
	})
	p.run(t, "is readable without JavaScript", func(t *testing.T) {
		p.withoutScripts(page + "#overloaded")
		const shown = `document.body.innerText`
		p.showsPart("the document", shown,
			"Idempotent-Replayed", "too_many_jobs", `curl "$BASE?path=/v1/me"`, "The console needs JavaScript")
		p.shows("the document has the console", `String(`+shown+`.includes("Use ids of your account"))`, "false")
	})
}

// settleTwo settles the jobs of claimTwo, each with an outcome and what belongs to it.
func (at *target) settleTwo(t *testing.T, n *names, first, second string) {
	t.Helper()
	settled := at.work(t, n, "settle", `{"jobs":[{"id":"{job1}","attempt":1,`+first+`},{"id":"{job2}","attempt":1,`+second+`}]}`)
	if strings.Count(settled, `"settled"`) != 2 {
		t.Fatal(settled)
	}
}
