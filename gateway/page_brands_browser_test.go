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
	p.shows("a brand without answers",
		item+`.textContent`,
		"Kovalt <b>ownKovalt, Kovalt Run, kovalt.examplementioned in: no answers are countedcited in: no sources are known")
	p.answerNext("POST", rejected(409,
		`{ title: "Taken", detail: "No.", errors: [{ pointer: "#/body/name", detail: "must differ" }] }`))
	p.eval(`document.getElementById("brand-name").focus()`, nil)
	p.type_("Kovalt")
	p.press("Enter")
	state("Taken. No. #/body/name: must differ.")
	p.shows("after an error, the name is", `document.getElementById("brand-name").value`, "Kovalt")

	settleTwo(t, at, claimTwo(t, at, 1),
		`"outcome":"completed","answer":{"text":"Kovalt.","citations":[{"url":"https://kovalt.example/","title":null}],`+
			`"search_queries":[],"model_version":null,"answered_at":"2026-01-02T03:04:05Z"}`,
		`"outcome":"completed","answer":{"text":"None.","citations":[],"search_queries":[],"model_version":null,`+
			`"answered_at":"2026-01-02T03:04:05Z","searched":false}`)
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
	p.shows("the interval begins at and the value is at",
		item+`.querySelector(".limits").style.left + " " + `+item+`.querySelector(".point").style.left`,
		"5.46% 50%")
	hasContrast(p)
	p.answerNext("GET", disconnected)
	p.eval(`document.getElementById("load-brands").click()`, nil)
	state("The server cannot be reached; try again.")
	p.shows("after an error, the page shows", `document.getElementById("brand-list").textContent`, "")
	p.isFaultless("the page", pageFaults)
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
	if got := p.text(`document.getElementById("curl").textContent`); strings.Contains(got, "Accept") {
		t.Errorf("the request for the first media type: %s", got)
	}
	choose("accept", "text/csv")
	choose("path", "/v1/metrics")
	p.showsPart("the request for CSV", `document.getElementById("curl").textContent`, "-H 'Accept: text/csv'")
	p.eval(`document.querySelector("#request .main").click()`, nil)
	p.until(`document.getElementById("answer").textContent.startsWith("brand_id,brand_name,kind,mentions,")`)
	p.showsPart("the headers shown",
		`document.getElementById("headers").textContent`, "content-type: text/csv; charset=utf-8; header=present")
	hasContrast(p)
}
