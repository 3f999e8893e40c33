package main

import (
	"regexp"
	"strings"
	"testing"

	"aiv/store/storetest"
)

func TestBrandsAreImportedAndListed(t *testing.T) {
	t.Parallel()
	s := newStory(t)
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
		misuse("brands list", "-status deleted", "-status must be one of active, archived, not \"deleted\""),
	})
}

// TestBrandsThereAndBack: what aiv brands list prints, without what the service sets, changes nothing where it is from,
// and makes the same brands where there are none.
func TestBrandsThereAndBack(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t)
	storetest.Exec(t, pool, `INSERT INTO plans (code, features) VALUES ('p', '{api_access}')`,
		`INSERT INTO accounts (id, name, plan_code) VALUES ('00000000-0000-7000-8000-000000000001', 'A', 'p')`)
	url := pool.Config().ConnString()
	set := regexp.MustCompile(`,"revision":\d+,"created_at":"[^"]+","updated_at":"[^"]+"`)
	list := func() (text, lines string) {
		t.Helper()
		text = prints{"brands list -json", 0, `^\[\{.*\},\{.*\}\]\n$`}.expect(t, url)
		return text, strings.ReplaceAll(strings.Trim(set.ReplaceAllString(text, ""), "[]\n"), "},{", "}\n{")
	}
	load := func(lines string) {
		t.Helper()
		file := t.TempDir() + "/brands.jsonl"
		write(t, file, lines)
		prints{"brands import " + file, 0, "Imported 2 brands"}.expect(t, url)
	}
	const start = `"account_id":"acct_0000000000e008000000000001","kind":"own","name":"K","exclude":["Kovalt Street"],"match_case":true,`
	load("{" + start + `"aliases":["Kovalt <AG>"],"domains":["kovalt.com","github.com/Kovalt"],"status":"active"}` + "\n" +
		"{" + start + `"id":"brand_01k3s4x0a1fvt8s9w2y7b6c5d4","aliases":[],"domains":["kovalt.com"],"status":"archived"}`)
	before, lines := list()
	load(lines)
	after, _ := list()
	equal(t, "list that was imported again", after, before)
	storetest.Exec(t, pool, `DELETE FROM brands`, `DELETE FROM brand_revisions`)
	load(lines)
	_, made := list()
	equal(t, "list of new brands", made, lines)
}
