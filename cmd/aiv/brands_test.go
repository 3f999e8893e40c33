package main

import (
	"encoding/json"
	"strings"
	"testing"

	"aiv/store/storetest"
)

func TestBrandsAreImportedAndListed(t *testing.T) {
	t.Parallel()
	s := &story{env: map[string]string{"DATABASE_URL": storetest.URL(t), "AIV_ACTOR": "ann"}}
	s.run(t, []step{{line: "brands list", stdout: "There are no brands.\n"}})
	account := s.newAccount(t)
	own := `{"id":"brand_01k3s4x0a1fvt8s9w2y7b6c5d4","account_id":"` + account + `","kind":"own","name":"Kovalt","aliases":["Kovalt CRM"],` +
		`"domains":["kovalt.com"],"exclude":[],"match_case":false,"status":"active"}`
	rival := `{"account_id":"` + account + `","kind":"competitor","name":"Ostrel","aliases":[],"domains":[],"exclude":[],"match_case":false,"status":"archived"}`
	listed := strings.TrimSuffix(strings.Replace(own, account, "{acct1}", 1), "}") + `,"revision":1,"created_at":"{time}","updated_at":"{time}"}`
	s.run(t, []step{
		{line: "brands import -", stdin: own + "\n" + strings.Replace(rival, `"archived"`, `"deleted"`, 1) + "\n" + `{"name":"kovalt crm"}`, code: 1, stderr: `
aiv: nothing was imported:
  line 2: status must be one of active, archived
  line 3: missing member "account_id"; missing member "kind"; missing member "aliases"; missing member "domains"; missing member "exclude"; missing member "match_case"; missing member "status"
`},
		{line: "brands import - -json", stdin: own, stdout: `{"brands":1}` + "\n"},
		{line: "brands list -json", stdout: "[" + listed + "]\n"},
		{line: "brands import -", stdin: own + "\n" + rival, stdout: "Imported 2 brands.\n"},
		{line: "brands list -json -status active -account " + account, stdout: "[" + listed + "]\n"},
		{line: "brands list -status deleted", code: 2, stderr: "aiv: -status must be one of active, archived, not \"deleted\"\nRun `aiv brands list -h` for help.\n"},
	})
}

// TestBrandsThereAndBack: what aiv brands list prints, without what the service sets, makes the same brands in another
// database.
func TestBrandsThereAndBack(t *testing.T) {
	t.Parallel()
	first, second := storetest.New(t), storetest.New(t)
	const account = `INSERT INTO plans (code, features) VALUES ('p', '{api_access}');
INSERT INTO accounts (id, name, plan_code) VALUES ('00000000-0000-7000-8000-000000000001', 'A', 'p')`
	storetest.Exec(t, first, account)
	storetest.Exec(t, second, account)
	list := func(url string) (text, lines string) {
		t.Helper()
		code, stdout, stderr := aiv(t.Context(), "brands", "list", "-json", "-database-url", url)
		if code != 0 {
			t.Fatal(stderr)
		}
		var all []map[string]any
		must(t, json.Unmarshal([]byte(stdout), &all))
		var b strings.Builder
		for _, brand := range all {
			for _, name := range []string{"revision", "created_at", "updated_at"} {
				delete(brand, name)
			}
			must(t, json.NewEncoder(&b).Encode(brand))
		}
		return stdout, b.String()
	}
	load := func(url, lines string) {
		t.Helper()
		file := t.TempDir() + "/brands.jsonl"
		write(t, file, lines)
		if code, _, stderr := aiv(t.Context(), "brands", "import", file, "-database-url", url); code != 0 {
			t.Fatal(stderr)
		}
	}
	const start = `"account_id":"acct_0000000000e008000000000001","kind":"own","name":"K","exclude":["Kovalt Street"],"match_case":true,`
	from, to := first.Config().ConnString(), second.Config().ConnString()
	load(from, "{"+start+`"aliases":["Kovalt <AG>"],"domains":["kovalt.com","github.com/Kovalt"],"status":"active"}`+"\n"+
		"{"+start+`"id":"brand_01k3s4x0a1fvt8s9w2y7b6c5d4","aliases":[],"domains":["kovalt.com"],"status":"archived"}`+"\n")
	before, lines := list(from)
	if strings.Count(lines, "\n") != 2 {
		t.Fatal(before)
	}
	load(from, lines)
	if after, _ := list(from); after != before {
		t.Errorf("importing the list has changed it from\n%sto\n%s", before, after)
	}
	load(to, lines)
	if _, got := list(to); got != lines {
		t.Errorf("got\n%swant\n%s", got, lines)
	}
}
