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

// loadReport enters a key and loads the figures.
func loadReport(p *tab, key string) {
	p.t.Helper()
	p.eval(`$("#key").focus()`, nil)
	p.type_(key)
	p.press("Enter")
	p.until(`/answers?, \d+ brands?\.$/.test($("#status").textContent)`)
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
		p.until(`$("#sources").dataset.state === "ready" && !$('section[data-state="idle"], section[data-state="loading"]')`)
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
	p.run(t, "shows each state", func(t *testing.T) {
		var names []string
		p.eval(script(t, "report_states"), &names)
		for _, name := range names {
			p.load(page)
			p.eval(script(t, "record")+";"+script(t, "report_states"), nil)
			var faults []string
			if p.eval(`states[`+quote(name)+`](`+quote(key)+`)`, &faults); len(faults) > 0 {
				t.Errorf("%s: %s", name, strings.Join(faults, "\n"))
			}
			if strings.Contains(name, "hostile texts") {
				p.inEachWindow([]int{320, 640, 1000, 1280}, func(where string) { p.isFaultless(name+", "+where, "wide", "fits_report") })
			}
		}
	})
	p.run(t, "says that it needs JavaScript", func(t *testing.T) {
		p.withoutScripts(page)
		p.shows("the page and its form", `[document.body.innerText.includes("This page needs JavaScript."),
			document.body.innerText.includes("API key")].join()`, "true,false")
		p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": false}, nil)
		p.load(page)
		loadReport(p, key)
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
