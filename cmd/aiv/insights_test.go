package main

import (
	"strings"
	"testing"
)

func TestInsightsImport(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	account := s.newAccount(t)
	recommendation := `{"kind":"recommendation","account_id":"` + account + `","type":"add_faq","category":"on_page","title":"T","summary":"","priority":"low",` +
		`"status":"suggested","model_ids":[],"question_ids":[],"run_id":null,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}` + "\n"
	alert := `{"kind":"alert","id":"alert_01k3s4x0a1fvt8s9w2y7b6c5d4","account_id":"` + account + `","type":"run_failed","severity":"high","status":"open",` +
		`"title":"T","message":"","metric":null,"direction":"none","current_value":null,"baseline_value":null,"model_id":null,"question_id":null,` +
		`"country":null,"run_id":null,"detected_at":"2026-01-01T00:00:00Z","resolved_at":null}` + "\n"
	s.run(t, []step{
		{line: "insights import -", stdin: recommendation + alert + alert, code: 1, stderr: "aiv: nothing was imported: line 3: duplicate id (first on line 2)\n"},
		{line: "insights import - -json", stdin: recommendation + alert, stdout: `{"recommendations":1,"alerts":1}` + "\n"},
		{line: "insights import -", stdin: alert, stdout: "Imported 0 recommendations and 1 alert.\n"},
		{line: "insights import -", stdin: strings.Replace(recommendation, "low", "urgent", 1) + "{}\n", code: 1, stderr: `
aiv: nothing was imported:
  line 1: priority must be one of high, medium, low
  line 2: missing member "kind"
`},
	})
}
