package schedules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aiv/catalog"
	"aiv/gateway"
	"aiv/insights"
	"aiv/insights/brands"
	"aiv/insights/brands/match"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/insights/webhooks"
	"aiv/runs/schedules"
	"aiv/store"

	"github.com/jackc/pgx/v5"
)

// A monitored is a site with the brands Kovalt, which is the customer's, Ostrel and Brenq, and an hourly schedule, whose
// runs get answers. It has the models m-1 and m-2 and the questions q-1 to q-10, three times each: 60 jobs.
type monitored struct {
	*site
	counter  *visibility.Counter
	schedule *schedules.Listed
	brands   map[store.ID]string
}

func newMonitored(t *testing.T) *monitored {
	t.Helper()
	m := &monitored{site: newSite(t), brands: make(map[store.ID]string)}
	m.counter = visibility.NewCounter(visibility.Config{Pool: m.pool, Questions: catalog.QuestionTexts})
	m.brand(t, brands.Own, "Kovalt")
	m.brand(t, brands.Competitor, "Ostrel")
	m.brand(t, brands.Competitor, "Brenq")
	c := change("Italy", schedules.Hourly)
	c.Run.QuestionIDs = nil
	for i := range 10 {
		id := fmt.Sprintf("q-%d", i+1)
		c.Run.QuestionIDs = append(c.Run.QuestionIDs, id)
		m.exec(t, `
INSERT INTO questions (id, text, language, country, topic, tags, status)
VALUES ($1, 'Which tool is best for ' || $1 || '?', 'it', 'IT', 'tools', '{}', 'active')`, id)
	}
	m.schedule = m.create(t, c)
	return m
}

func (m *monitored) brand(t *testing.T, kind, name string) {
	t.Helper()
	b, err := brands.Create(t.Context(), m.pool, m.account, store.NewID(), brands.Change{Kind: &kind, Name: &name, MatchCase: new(false)})
	must(t, err)
	m.brands[b.ID] = name
}

// An answer returns the text of a job's answer and the URL of its citation, if any: "Ostrel. https://g3r.com/best". If
// it is empty, the job fails. All numbers are from 0.
type answer func(model, question, repetition int) string

// run carries out the next due time, answers the run's jobs, or cancels it if the answer is nil, and evaluates it.
func (m *monitored) run(t *testing.T, of answer) *schedules.Occurrence {
	t.Helper()
	run := m.next(t)
	if of != nil {
		m.finish(t, run, of)
	} else {
		m.cancel(t, &run)
	}
	must(t, m.process.Evaluate(t.Context()))
	o := &m.occurrences(t, m.schedule.ID)[0]
	if o.EvaluatedAt == nil {
		t.Errorf("the run was not evaluated: %+v", o)
	}
	return o
}

// next carries out the next due time and returns its run.
func (m *monitored) next(t *testing.T) store.ID {
	t.Helper()
	m.advance(t, time.Hour)
	must(t, m.process.CarryOut(t.Context()))
	o := m.occurrences(t, m.schedule.ID)[0]
	if o.RunID == nil {
		t.Fatalf("no run: %+v", o)
	}
	return *o.RunID
}

// finish ends a run with its answers, as settlements do.
func (m *monitored) finish(t *testing.T, run store.ID, of answer) {
	t.Helper()
	var jobs []visibility.Job
	failed := 0
	for n := range 60 {
		j := visibility.Job{Account: m.account, Run: run, Ordinal: int32(n + 1)}
		text, url, cites := strings.Cut(of(n/30, n/3%10, n%3), " https:")
		if j.Answer = (&visibility.Answer{Text: text, Version: new("v1")}); cites {
			j.Answer.Citations = []match.Citation{{URL: "https:" + url}}
		}
		if text == "" {
			j.Answer = nil
			failed++
		}
		jobs = append(jobs, j)
	}
	must(t, pgx.BeginFunc(t.Context(), m.pool, func(tx pgx.Tx) error {
		var b pgx.Batch
		if err := m.counter.Count(t.Context(), tx, &b, jobs); err != nil {
			return err
		}
		b.Queue(`
UPDATE measurement_runs SET status = CASE WHEN $2::integer = 0 THEN 'completed' WHEN $2 = total_jobs THEN 'failed' ELSE 'partial' END,
  started_at = now(), finished_at = now(), jobs_completed = total_jobs - $2, jobs_failed = $2, jobs_counted = total_jobs
WHERE id = $1`, run, failed)
		b.Queue(`UPDATE account_months SET jobs_completed = jobs_completed + $2, jobs_failed = jobs_failed + $3 WHERE account_id = $1`,
			m.account, len(jobs)-failed, failed)
		return tx.SendBatch(t.Context(), &b).Close()
	}))
}

// mentions answers every job, the first n of each question with Kovalt, and all with Ostrel in the first k questions.
func mentions(n, k int) answer {
	return func(model, question, repetition int) string {
		words := "Many tools exist."
		if model*3+repetition < n {
			words += " Kovalt is one."
		}
		if question < k {
			words += " Ostrel is another."
		}
		return words
	}
}

// byQuestion answers the jobs of the first questions with their words, and all others with the last.
func byQuestion(words ...string) answer {
	return func(_, question, _ int) string { return words[min(question, len(words)-1)] }
}

// recommendations returns the recommendations of the account, the mention gap before the citation gap.
func (m *monitored) recommendations(t *testing.T) []insights.Recommendation {
	t.Helper()
	found, err := insights.Recommendations(t.Context(), m.pool, m.account, insights.RecommendationFilter{}, store.Page{Limit: 200})
	must(t, err)
	slices.SortFunc(found, func(a, b insights.Recommendation) int { return -strings.Compare(a.Type, b.Type) })
	return found
}

func (m *monitored) alerts(t *testing.T) []insights.Alert {
	t.Helper()
	found, err := insights.Alerts(t.Context(), m.pool, m.account, insights.AlertFilter{}, store.Page{Limit: 200})
	must(t, err)
	slices.Reverse(found)
	return found
}

// outlineAlerts returns the alerts in short, such as "visibility_drop open Kovalt m-2", in alphabetical order.
func (m *monitored) outlineAlerts(t *testing.T) string {
	t.Helper()
	var words []string
	for _, a := range m.alerts(t) {
		word := a.Type + " " + a.Status
		if a.BrandID != nil {
			word += " " + m.brands[*a.BrandID]
		}
		if a.ModelID != nil {
			word += " " + *a.ModelID
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// TestDropOpensOneAlert: a drop of all models opens one alert, which stays as it is while the drop lasts, and resolves.
func TestDropOpensOneAlert(t *testing.T) {
	m := newMonitored(t)
	// after runs several times with the first n answers of each question about Kovalt.
	after := func(runs, n int, want, what string) (last *schedules.Occurrence) {
		t.Helper()
		for range runs {
			last = m.run(t, mentions(n, 0))
		}
		equal(t, want, m.outlineAlerts(t), what)
		return last
	}
	after(4, 4, "", "without a change")
	dropped := after(1, 1, "visibility_drop open Kovalt", "after a drop")
	found := m.alerts(t)
	want := []insights.Alert{{
		ID: found[0].ID, Type: "visibility_drop", Severity: "high", Status: "open", Title: "Italy: Kovalt is mentioned less often",
		Message: "Kovalt is mentioned in 16.67 % of the answers (10 of 60), down from 66.67 % (160 of 240) in the 4 runs before. " +
			"The change is -50 points (95 % interval -59.28 to -37.06). Moved most: q-1, q-10, q-2.",
		Metric: new("mention_rate"), Direction: "down", CurrentValue: new(0.1667), BaselineValue: new(0.6667), Country: new("IT"),
		RunID: dropped.RunID, DetectedAt: found[0].DetectedAt, BrandID: found[0].BrandID, ScheduleID: &m.schedule.ID,
	}}
	equal(t, want, found, "after a drop")
	m.run(t, mentions(1, 0))
	equal(t, want, m.alerts(t), "after another run with the drop")
	after(3, 1, "visibility_drop resolved Kovalt", "when the drop is the baseline")
	after(1, 4, "visibility_drop resolved Kovalt, visibility_gain open Kovalt", "after a gain")
	equal(t, 2, len(m.events(t, events.AlertOpened)), "events of alerts")
	must(t, m.schedules.Delete(t.Context(), m.account, m.schedule.ID))
	equal(t, "visibility_drop resolved Kovalt, visibility_gain resolved Kovalt", m.outlineAlerts(t), "without the schedule")
	m.verify(t)
}

// TestAlertsAfterRuns has the alerts after runs. A change opens an alert over all models if it is clear there, else one
// of the model in which it is clear; each brand has its own. A run of which many jobs failed opens one alert, is compared
// with nothing, and like a canceled one is in no baseline, which has the four latest others.
func TestAlertsAfterRuns(t *testing.T) {
	t.Parallel()
	// less is a run in which so many answers of m-2 to each of five questions do not mention Kovalt any more.
	less := func(answers int) answer {
		return func(model, question, repetition int) string {
			if model == 1 && question < 5 && repetition < answers {
				return "Nothing."
			}
			return "Kovalt is one."
		}
	}
	all, some, few, nothing := less(0), mentions(4, 0), mentions(1, 0), byQuestion("Nothing.")
	disturbed, failed, canceled := byQuestion("", "", "", "", "Nothing."), byQuestion(""), answer(nil)
	const outage = "24 of 60 jobs failed (40 %). Visibility was not compared with earlier runs."
	for name, test := range map[string]struct {
		runs    []answer
		want    string
		message string // of the last alert, in part
	}{
		"clear over all models":   {[]answer{all, all, all, all, less(2)}, "visibility_drop open Kovalt", "down from 100 %"},
		"clear in one model only": {[]answer{all, all, all, all, less(1)}, "visibility_drop open Kovalt m-2", "On m-2, Kovalt is"},
		"two brands, then one": {[]answer{nothing, nothing, nothing, nothing, byQuestion("Ostrel and Brenq."), byQuestion("Brenq.")},
			"competitor_gained open Brenq, competitor_gained resolved Ostrel",
			" is mentioned in 100 % of the answers (60 of 60), up from 0 % (0 of 240) in the 4 runs before."},
		"many failed, then all": {[]answer{some, disturbed, failed}, "run_failed open", outage},
		"many failed, then few": {[]answer{some, disturbed, some}, "run_failed resolved", outage},
		"others between": {[]answer{few, some, disturbed, some, failed, some, disturbed, some, canceled, few},
			"run_failed resolved, run_failed resolved, run_failed resolved, visibility_drop open Kovalt, visibility_gain resolved Kovalt",
			"(160 of 240) in the 4 runs before"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMonitored(t)
			for _, of := range test.runs {
				m.run(t, of)
			}
			equal(t, test.want, m.outlineAlerts(t))
			if found := m.alerts(t); !strings.Contains(found[len(found)-1].Message, test.message) {
				t.Errorf("got the message %q, want %q", found[len(found)-1].Message, test.message)
			}
		})
	}
}

// TestGapIsSuggestedOnce: gaps are suggested once, updated while they last, and done when they are gone.
func TestGapIsSuggestedOnce(t *testing.T) {
	m := newMonitored(t)
	gaps := byQuestion("Ostrel and Brenq. https://g3r.com/best", "Kovalt.", "Nothing.")
	first := m.run(t, gaps)
	found := m.recommendations(t)
	var got []string
	for _, r := range found {
		got = append(got, fmt.Sprintf("%s %s %s %s %s %s", r.Type, r.Category, r.Priority, r.Status, r.ModelIDs, r.QuestionIDs),
			r.Title, r.Summary)
		equal(t, []*store.ID{first.RunID, &m.schedule.ID}, []*store.ID{r.RunID, r.ScheduleID}, "run and schedule")
	}
	equal(t, []string{
		"mention_gap on_page high suggested [m-1 m-2] [q-1]", `Italy: no answer mentions you for "Which tool is best for q-1?"`,
		"Brenq is mentioned in 6 of 6 answers, and none of your brands in any. Also mentioned: Ostrel (6).",
		"citation_gap off_page medium suggested [m-1 m-2] [q-1]", "Italy: g3r.com is cited where competitors are mentioned and you are not",
		"g3r.com is cited in 6 answers that mention a competitor and none of your brands (1 question, 2 models).",
	}, got, "the gaps")
	for _, then := range []struct {
		of     answer
		status string
	}{{gaps, "suggested"}, {mentions(3, 0), "done"}, {gaps, "suggested"}} {
		last := m.run(t, then.of)
		for i, r := range m.recommendations(t) {
			changed := then.status == "done" || *r.RunID == *last.RunID && r.UpdatedAt.After(found[i].UpdatedAt)
			if r.ID != found[i].ID || r.Status != then.status || !changed {
				t.Errorf("got %+v, want %s", r, then.status)
			}
		}
	}
	equal(t, 4, len(m.events(t, events.RecommendationSuggested)), "events")
	m.verify(t)
}

// TestEvaluationWaitsForRecount: a run waits for the recount of its answers.
func TestEvaluationWaitsForRecount(t *testing.T) {
	m := newMonitored(t)
	m.run(t, mentions(4, 0))
	m.finish(t, m.next(t), mentions(4, 0))
	m.brand(t, brands.Competitor, "Later")
	must(t, m.process.Evaluate(t.Context()))
	equal(t, (*time.Time)(nil), m.occurrences(t, m.schedule.ID)[0].EvaluatedAt, "evaluation of a run whose answers are to be recounted")
}

// imports replaces a derived row by a line, as an operator's import does. The line has the ids of the account and the row
// at its %q.
func (m *monitored) imports(t *testing.T, id, line string) error {
	t.Helper()
	admin := &insights.Admin{Pool: m.pool, Actor: "ann", Events: gateway.EventData{}, Record: webhooks.RecordMany}
	_, err := admin.Import(t.Context(), strings.NewReader(fmt.Sprintf(line, m.account.Text("acct"), id)+"\n"), nil)
	return err
}

// TestImportedAlertsAreRespected: the status that an operator imports for an alert stays, and at most one alert about
// the same is open.
func TestImportedAlertsAreRespected(t *testing.T) {
	m := newMonitored(t)
	set := func(a insights.Alert, status, resolvedAt string) error {
		return m.imports(t, a.ID.Text("alert"), `{"kind":"alert","account_id":%q,"id":%q,"type":"visibility_drop","severity":"low",`+
			`"title":"Imported","message":"","metric":null,"direction":"down","current_value":null,"baseline_value":null,"model_id":null,`+
			`"question_id":null,"country":null,"run_id":null,"detected_at":"2026-01-01T00:00:00Z",`+
			`"status":"`+status+`","resolved_at":`+resolvedAt+`}`)
	}
	m.run(t, mentions(4, 0))
	m.run(t, mentions(1, 0))
	first := m.alerts(t)[0]
	must(t, set(first, "acknowledged", "null"))
	m.run(t, mentions(1, 0))
	equal(t, "visibility_drop acknowledged Kovalt", m.outlineAlerts(t), "an acknowledged alert")
	if a := m.alerts(t)[0]; *a.ScheduleID != m.schedule.ID || a.Title != "Imported" {
		t.Errorf("the imported alert: %+v", a)
	}
	must(t, set(first, "resolved", `"2030-01-01T00:00:00Z"`))
	m.run(t, mentions(0, 0))
	equal(t, "visibility_drop open Kovalt, visibility_drop resolved Kovalt", m.outlineAlerts(t), "after another run with the drop")
	if err := set(first, "open", "null"); err == nil || !strings.Contains(err.Error(), "another alert of its schedule is open") {
		t.Errorf("a second open alert: %v", err)
	}
	must(t, set(m.alerts(t)[1], "resolved", `"2030-01-01T00:00:00Z"`)) // the first one has an earlier detected_at
	must(t, set(first, "open", "null"))
	m.verify(t)
}

// TestImportedRecommendationsAreRespected: a recommendation whose status was imported changes as the gap comes and goes,
// unless an operator has dismissed it or done it.
func TestImportedRecommendationsAreRespected(t *testing.T) {
	m := newMonitored(t)
	gap := byQuestion("Ostrel.", "Kovalt.")
	few := func(model, question, repetition int) string {
		if question == 0 && repetition > 0 { // two answers to its question decide nothing
			return ""
		}
		return gap(model, question, repetition)
	}
	// after returns the status of the only recommendation after each run.
	after := func(runs ...answer) (statuses []string) {
		t.Helper()
		for _, of := range runs {
			m.run(t, of)
			found := m.recommendations(t)
			equal(t, 1, len(found), "recommendations")
			statuses = append(statuses, found[0].Status)
		}
		return statuses
	}
	equal(t, []string{"suggested", "suggested"}, after(gap, few), "also with too few answers to the question")
	for imported, want := range map[string][]string{ // when the gap is found, gone and back
		"accepted":    {"accepted", "done", "suggested"},
		"in_progress": {"in_progress", "done", "suggested"},
		"dismissed":   {"dismissed", "dismissed", "dismissed"},
		"done":        {"done", "done", "done"},
	} {
		must(t, m.imports(t, m.recommendations(t)[0].ID.Text("rec"), `{"kind":"recommendation","account_id":%q,"id":%q,"type":"mention_gap",`+
			`"category":"on_page","title":"T","summary":"S","priority":"low","model_ids":[],"question_ids":[],"run_id":null,`+
			`"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","status":"`+imported+`"}`))
		equal(t, want, after(gap, mentions(3, 0), gap), imported, " was imported")
	}
	m.verify(t)
}
