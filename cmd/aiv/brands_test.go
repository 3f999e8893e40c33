package main

import (
	"strings"
	"testing"
)

// TestBrandsAreImportedAndListed: the list has the members of the lines that were imported, with the same texts, and
// what the service sets. Importing the same lines again changes nothing.
func TestBrandsAreImportedAndListed(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.run(t, []step{{line: "brands list", stdout: "There are no brands.\n"}})
	account := s.newAccount(t)
	own := `{"id":"brand_01k3s4x0a1fvt8s9w2y7b6c5d4","account_id":"` + account + `","kind":"own","name":"Kovalt","aliases":["Kovalt <AG>"],` +
		`"domains":["kovalt.com","github.com/Kovalt"],"exclude":["Kovalt Street"],"match_case":true,"status":"active"}`
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
