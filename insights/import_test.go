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

// TestInvalidLines: each line that only the database can refuse is rejected for exactly this reason, and the valid lines
// around it are not written. The first 20 are reported. The transcripts of cmd/aiv have the faults of form.
func TestInvalidLines(t *testing.T) {
	s := newSite(t)
	c, other := s.customer(), s.customer()
	theirs, unknown, erased := store.NewID(), store.NewID(), store.NewID()
	must(t, s.try(other.recommendation(idOf("rec", theirs)), other.alert(idOf("alert", theirs))))
	before := s.state()
	s.exec(`INSERT INTO accounts (id, name, plan_code, erased_at) VALUES ($1, 'erased', 'p', now())`, erased)
	for line, want := range map[string]string{
		c.alert(idOf("alert", theirs)):                      "id belongs to another account",
		c.recommendation(idOf("rec", theirs)):               "id belongs to another account",
		c.alert(ref("account_id", "acct", unknown)):         "unknown account",
		c.recommendation(ref("account_id", "acct", erased)): "the account is erased",
		c.alert(ref("run_id", "run", unknown)):              "unknown run of this account",
		c.recommendation(ref("run_id", "run", other.run)):   "unknown run of this account",
	} {
		err := s.try(c.recommendation(), "\n", c.alert(), line, c.alert())
		equal(t, "line 4: "+want, fmt.Sprint(err), line)
	}
	var first20 []string
	for i := range 20 {
		first20 = append(first20, fmt.Sprintf("line %d: unknown run of this account", i+1))
	}
	err := s.try(slices.Repeat([]string{c.alert(ref("run_id", "run", unknown))}, 21)...)
	equal(t, strings.Join(first20, "\n"), fmt.Sprint(err), "21 lines")
	equal(t, before, s.state(), "the database after rejected imports")
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
		equal(t, insights.Imported{Recommendations: 1, Alerts: 1}, n, "imported")
		return s.state()
	}
	first := load(c.recommendation(rec), c.alert(alert))
	equal(t, []int{1, 2}, progress, "progress")
	equal(t, first, load(c.recommendation(rec), c.alert(alert)), "the second import")
	load(c.recommendation(rec, `status:"done"`, `updated_at:"2026-01-02T01:00:00.1234567+01:00"`), c.alert(alert))
	equal(t, "done 2026-01-01 00:00:00 2026-01-02 00:00:00.123456", storetest.Value[string](t, s.Pool,
		`SELECT concat_ws(' ', status, created_at AT TIME ZONE 'UTC', updated_at AT TIME ZONE 'UTC') FROM recommendations`), "the changed row")
	load(c.recommendation(), c.alert())
	load(c.recommendation(), c.alert(`status:"resolved"`, at("detected_at", 2), at("resolved_at", 3)))
	equal(t, "2026-01-01, 2026-01-01, 2026-01-02 2026-01-03", storetest.Value[string](t, s.Pool,
		`SELECT string_agg(concat_ws(' ', (detected_at AT TIME ZONE 'UTC')::date, (resolved_at AT TIME ZONE 'UTC')::date), ', '
			ORDER BY detected_at) FROM alerts`), "alerts")

	var want []string
	for _, changed := range []int{2, 1, 2, 2} {
		const row = `ann insights.import insights {"alerts": 1, "rows_changed": %d, "recommendations": 1}`
		want = append(want, fmt.Sprintf(row, changed))
	}
	equal(t, want, storetest.Value[[]string](t, s.Pool,
		`SELECT array_agg(concat_ws(' ', actor, action, subject, detail) ORDER BY id) FROM audit_log`), "audit log")
}
