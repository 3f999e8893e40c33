package insights_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"aiv/insights"
	"aiv/store"
	"aiv/store/storetest"
)

// TestInvalidLines: each line is rejected for exactly this reason, and the valid lines around it are not written.
func TestInvalidLines(t *testing.T) {
	s := newSite(t)
	c, other := s.customer(), s.customer()
	theirs, unknown, erased := store.NewID(), store.NewID(), store.NewID()
	must(t, s.try(other.recommendation(idOf("rec", theirs)), other.alert(idOf("alert", theirs))))
	before := s.state()
	s.exec(`INSERT INTO accounts (id, name, plan_code, erased_at) VALUES ($1, 'erased', 'p', now())`, erased)
	const form = "must match ^[a-z][a-z0-9_]{0,63}$"
	const id = "^[A-Za-z0-9._:/-]{1,128}$"
	for _, test := range []struct{ line, want string }{
		{`{"kind":"insight","x":1}`, "kind must be one of recommendation, alert"},
		{c.alert(`extra:1`), `unknown member "extra"`},

		{c.recommendation(`id:"rec_1"`), "id must be a recommendation's id"},
		{c.alert(idOf("alert", theirs)), "id belongs to another account"},
		{c.recommendation(idOf("rec", theirs)), "id belongs to another account"},
		{c.alert(ref("account_id", "run", c.account)), "account_id must be an account's id"},
		{c.alert(ref("account_id", "acct", unknown)), "unknown account"},
		{c.recommendation(ref("account_id", "acct", erased)), "the account is erased"},
		{c.alert(ref("run_id", "run", unknown)), "unknown run of this account"},
		{c.recommendation(ref("run_id", "run", other.run)), "unknown run of this account"},

		{c.recommendation(`type:"Add FAQ"`), "type " + form},
		{c.recommendation(`category:"offpage"`), "category must be one of on_page, off_page, technical, social"},
		{c.recommendation(`priority:"critical"`), "priority must be one of high, medium, low"},
		{c.recommendation(`status:"open"`), "status must be one of suggested, accepted, in_progress, done, dismissed"},
		{c.recommendation(`model_ids:["a b"]`), "model_ids must contain only strings that match " + id},
		{c.recommendation(at("created_at", 2)), "updated_at must not be before created_at"},

		{c.alert(`type:"add_faq"`), "type must be one of " + strings.Join(insights.AlertTypes, ", ")},
		{c.alert(`severity:"mild"`), "severity must be one of critical, high, medium, low"},
		{c.alert(`status:"closed"`), "status must be one of open, acknowledged, resolved"},
		{c.alert(`metric:""`), "metric " + form + " or be null"},
		{c.alert(`direction:"sideways"`), "direction must be one of up, down, none"},
		{c.alert(`current_value:"1"`), "current_value must be a number or null"},
		{c.alert(`question_id:"a b"`), "question_id must match " + id + " or be null"},
		{c.alert(`country:"it"`), "country must match ^[A-Z]{2}$ or be null"},
		{c.alert(at("resolved_at", 2)), "resolved_at must be null, as status is open"},
		{c.alert(`status:"resolved"`), "resolved_at must be set, as status is resolved"},
		{c.alert(`status:"resolved"`, at("detected_at", 2), at("resolved_at", 1)),
			"resolved_at must not be before detected_at"},
	} {
		err := s.try(c.recommendation(), "\n", c.alert(), strings.TrimSuffix(test.line, "\n")+"\n", c.alert())
		equal(t, test.line, "line 4: "+test.want, fmt.Sprint(err))
	}
	equal(t, "the database after rejected imports", before, s.state())
}

// TestAllLinesAreReported: one import reports all invalid lines by number, up to 20 that the database refuses.
func TestAllLinesAreReported(t *testing.T) {
	s := newSite(t)
	c := s.customer()
	duplicate, unknown := idOf("alert", store.NewID()), ref("run_id", "run", store.NewID())
	var first20 []string
	for i := range 20 {
		first20 = append(first20, fmt.Sprintf("line %d: unknown run of this account", i+1))
	}
	for _, test := range []struct {
		lines []string
		want  string
	}{
		{[]string{c.alert(`status:"x"`, "title:1"), c.alert(), c.recommendation("type:", "more:1")},
			"line 1: status must be one of open, acknowledged, resolved; title must be a string\n" +
				`line 3: missing member "type"; unknown member "more"`},
		{[]string{c.alert(duplicate), c.alert(duplicate)}, "line 2: duplicate id (first on line 1)"},
		{slices.Repeat([]string{c.alert(unknown)}, 21), strings.Join(first20, "\n")},
	} {
		equal(t, "error", test.want, fmt.Sprint(s.try(test.lines...)))
	}
}

// TestImportTwice: an import changes the rows that differ and audits how many these are. A line without an id adds a
// row each time. The golden files show the members.
func TestImportTwice(t *testing.T) {
	s := newSite(t)
	c := s.customer()
	rec, alert := idOf("rec", store.NewID()), idOf("alert", store.NewID())
	var progress []int
	load := func(lines ...string) string {
		t.Helper()
		progress = nil
		file := strings.NewReader(strings.Join(lines, ""))
		n, err := s.Import(t.Context(), file, func(n int) { progress = append(progress, n) })
		must(t, err)
		equal(t, "imported", insights.Imported{Recommendations: 1, Alerts: 1}, n)
		return s.state()
	}
	first := load(c.recommendation(rec), c.alert(alert))
	equal(t, "progress", []int{1, 2}, progress)
	equal(t, "the second import", first, load(c.recommendation(rec), c.alert(alert)))
	load(c.recommendation(rec, `status:"done"`, `updated_at:"2026-01-02T01:00:00.1234567+01:00"`), c.alert(alert))
	equal(t, "the changed row", "done 2026-01-01 00:00:00 2026-01-02 00:00:00.123456", storetest.Value[string](t, s.Pool,
		`SELECT concat_ws(' ', status, created_at AT TIME ZONE 'UTC', updated_at AT TIME ZONE 'UTC') FROM recommendations`))
	load(c.recommendation(), c.alert())
	load(c.recommendation(), c.alert(`status:"resolved"`, at("detected_at", 2), at("resolved_at", 3)))
	equal(t, "alerts", "2026-01-01, 2026-01-01, 2026-01-02 2026-01-03", storetest.Value[string](t, s.Pool,
		`SELECT string_agg(concat_ws(' ', (detected_at AT TIME ZONE 'UTC')::date, (resolved_at AT TIME ZONE 'UTC')::date), ', ' ORDER BY detected_at) FROM alerts`))

	var want []string
	for _, changed := range []int{2, 1, 2, 2} {
		const row = `ann insights.import insights {"alerts": 1, "rows_changed": %d, "recommendations": 1}`
		want = append(want, fmt.Sprintf(row, changed))
	}
	equal(t, "audit log", want, storetest.Value[[]string](t, s.Pool,
		`SELECT array_agg(concat_ws(' ', actor, action, subject, detail) ORDER BY id) FROM audit_log`))
}
