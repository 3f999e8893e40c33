//go:build browser

package gateway_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// brandsInPage creates a brand, works a run, and shows how many of its answers mention and cite the brand.
func brandsInPage(t *testing.T, p *tab, at *target) {
	t.Helper()
	state := func(text string) {
		t.Helper()
		p.until(`document.getElementById("brands-state").textContent === ` + quote(text))
	}
	p.tabTo("#load-brands")
	p.press("Enter")
	state("The account has no active brands.")
	p.tabTo("#brand-name")
	p.type_("Kovalt <b>")
	p.tabTo("#brand-aliases")
	p.type_("Kovalt, Kovalt Run,")
	p.tabTo("#brand-domains")
	p.type_("kovalt.example")
	p.press("Enter")
	// The results above were counted without brands.
	state("Kovalt <b> is created. 0 answers are counted; 2 pending, 1 to be counted again. Load again for their numbers.")
	item := `document.querySelector("#brand-list > li")`
	if got := p.text(item + `.textContent`); got != "Kovalt <b>ownKovalt, Kovalt Run, kovalt.examplementioned in: no answers are countedcited in: no sources are known" {
		t.Errorf("a brand without answers: %q", got)
	}
	p.eval(`(() => { // the next request is rejected
		const real = window.fetch, problem = { title: "Taken", detail: "No.", errors: [{ pointer: "#/body/name", detail: "must differ" }] };
		window.fetch = () => { window.fetch = real; return Promise.resolve(new Response(JSON.stringify(problem), { status: 409 })); };
		document.getElementById("brand-name").focus();
	})()`, nil)
	p.type_("Kovalt")
	p.press("Enter")
	state("Taken. No. #/body/name: must differ.")
	if got := p.text(`document.getElementById("brand-name").value`); got != "Kovalt" {
		t.Errorf("after an error, the name is %q", got)
	}

	n := newNames()
	n.rename(at.send(t, n.wire(t, `POST /external-api-v1/v1/runs
Authorization: Bearer {key:full}
Content-Type: application/json
Idempotency-Key: {fresh:brands}

{"model_ids":["golden/worked"],"question_ids":["golden-q1","golden-q2"],"repetitions":1,"measurement_type":"grounded","locale":"it-IT","country":"IT","language":"it"}`, at.keys)))
	n.rename(at.send(t, n.wire(t, `POST /worker/v1/claim
Authorization: Bearer {worker:main}
Content-Type: application/json

{"limit":2,"lease_seconds":900,"providers":null,"wait_seconds":10}`, at.keys)))
	settled := at.send(t, n.wire(t, `POST /worker/v1/settle
Authorization: Bearer {worker:main}
Content-Type: application/json

{"jobs":[{"id":"{job1}","attempt":1,"outcome":"completed","answer":{"text":"Kovalt.","citations":[{"url":"https://kovalt.example/","title":null}],`+
		`"search_queries":[],"model_version":null,"answered_at":"2026-01-02T03:04:05Z"}},`+
		`{"id":"{job2}","attempt":1,"outcome":"completed","answer":{"text":"None.","citations":[],"search_queries":[],"model_version":null,`+
		`"answered_at":"2026-01-02T03:04:05Z","searched":false}}]}`, at.keys))
	if strings.Count(settled, `"settled"`) != 2 {
		t.Fatal(settled)
	}
	p.eval(`document.getElementById("load-brands").click()`, nil)
	state("2 answers are counted; 2 pending, 1 to be counted again. Load again for their numbers.")
	var rates []string
	p.eval(`[...`+item+`.querySelectorAll("p")].slice(1).map((e) => e.textContent)`, &rates)
	if diff := cmp.Diff([]string{
		"mentioned in 1 of 2 answers: 50% (95% interval 5.5% to 94.5%; few answers)",
		"cited in 1 of 1 answers: 100% (95% interval 20.7% to 100%; few answers)",
	}, rates); diff != "" {
		t.Errorf("the rates (-want +got):\n%s", diff)
	}
	if got := p.text(item + `.querySelector(".limits").style.left + " " + ` + item + `.querySelector(".point").style.left`); got != "5.46% 50%" {
		t.Errorf("the interval begins at and the value is at %s", got)
	}
	showAndMeasure(t, p, "your-brands", "brands")
	p.eval(`(() => { // the next GET fails
		const real = window.fetch;
		window.fetch = () => { window.fetch = real; return Promise.reject(new TypeError("Failed to fetch")); };
		document.getElementById("load-brands").click();
	})()`, nil)
	state("The server cannot be reached; try again.")
	if got := p.text(`document.getElementById("brand-list").textContent`); got != "" {
		t.Errorf("after an error, the page shows %q", got)
	}
	if diff := cmp.Diff([]string{}, pageFaults(t, p)); diff != "" {
		t.Error(diff)
	}
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
	if got := p.text(`String(document.querySelector("#request .types").hidden)`); got != "true" {
		t.Error("the console offers media types for a route with one")
	}
	choose("route", "GET /v1/metrics")
	var types []string
	p.eval(`[...document.getElementById("accept").options].map((o) => o.value)`, &types)
	if diff := cmp.Diff([]string{"application/json", "text/csv"}, types); diff != "" {
		t.Errorf("media types (-want +got):\n%s", diff)
	}
	if got := p.text(`document.getElementById("curl").textContent`); strings.Contains(got, "Accept") {
		t.Errorf("the request for the first media type: %s", got)
	}
	choose("accept", "text/csv")
	choose("path", "/v1/metrics")
	if got := p.text(`document.getElementById("curl").textContent`); !strings.Contains(got, "-H 'Accept: text/csv'") {
		t.Errorf("the request for CSV: %s", got)
	}
	p.eval(`document.querySelector("#request .main").click()`, nil)
	p.until(`document.getElementById("answer").textContent.startsWith("brand_id,brand_name,kind,mentions,")`)
	if got := p.text(`document.getElementById("headers").textContent`); !strings.Contains(got, "content-type: text/csv; charset=utf-8; header=present") {
		t.Errorf("the headers shown: %s", got)
	}
	showAndMeasure(t, p, "console", "csv")
}
