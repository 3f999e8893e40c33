package insights

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/store"
)

// The types of derived alerts.
const (
	visibilityDrop   = "visibility_drop"
	visibilityGain   = "visibility_gain"
	citationLost     = "citation_lost"
	citationGained   = "citation_gained"
	competitorGained = "competitor_gained"
	runFailed        = "run_failed"
)

// alertKinds lists the changes of brands that open alerts. brand is the kind of brand, verdict is the direction of the
// change, rate takes the rate from a comparison, and largeSeverity is for a difference of large or more.
var alertKinds = []struct {
	name, brand, metric, verdict string
	rate                         func(*visibility.Change) *visibility.RateChange
	severity, largeSeverity      string
}{
	{visibilityDrop, brands.Own, "mention_rate", visibility.Down, mentionRate, "medium", "high"},
	{visibilityGain, brands.Own, "mention_rate", visibility.Up, mentionRate, "low", "low"},
	{citationLost, brands.Own, "citation_rate", visibility.Down, citationRate, "medium", "high"},
	{citationGained, brands.Own, "citation_rate", visibility.Up, citationRate, "low", "low"},
	{competitorGained, brands.Competitor, "mention_rate", visibility.Up, mentionRate, "low", "medium"},
}

func mentionRate(c *visibility.Change) *visibility.RateChange  { return &c.MentionRate }
func citationRate(c *visibility.Change) *visibility.RateChange { return &c.CitationRate }

const (
	// openQuantile is the quantile of the normal distribution for 99 %. A run has a dozen comparisons or more: with
	// intervals of 95 %, up to a third of the runs without a change would open an alert.
	openQuantile = 2.5758293035489004
	// minAnswers is the minimum number of answers on each side of a usable comparison.
	minAnswers = 10
	// large is the smallest difference that gives an alert its largeSeverity.
	large visibility.Decimal = 3000
	// maxOpened bounds the number of alerts that a run opens.
	maxOpened = 100
)

// A finding is what a run shows of one fingerprint: a type of alert, a brand, and a model or all.
type finding struct {
	kind   int // index of alertKinds
	model  string
	change *visibility.Change // nil: it was not compared
}

// rate returns the comparison of the rate that the type of alert concerns; change must not be nil.
func (f *finding) rate() *visibility.RateChange { return alertKinds[f.kind].rate(f.change) }

// isUsable reports whether there are enough answers to say something.
func (f *finding) isUsable() bool {
	return f.change != nil && f.rate().Difference != nil && f.rate().Current.Of >= minAnswers && f.rate().Baseline.Of >= minAnswers
}

// shows reports whether a usable comparison has the verdict of the type.
func (f *finding) shows() bool { return f.rate().Verdict == alertKinds[f.kind].verdict }

// opens reports whether a usable comparison is clear and large enough for an alert.
func (f *finding) opens(minChange visibility.Decimal) bool {
	return f.shows() && f.size() >= minChange && f.rate().Beyond(openQuantile)
}

// size is the absolute difference.
func (f *finding) size() visibility.Decimal {
	return max(f.rate().Difference.Value, -f.rate().Difference.Value)
}

// fingerprint identifies what an alert of a schedule is about. No type, id of a brand or id of a model contains a
// space.
func fingerprint(kind, brand, model string) string {
	text := kind
	if brand != "" {
		text += " " + brand
	}
	if model != "" {
		text += " " + model
	}
	return text
}

// findings returns what the run shows, by fingerprint.
func (e *Evaluation) findings() map[string]*finding {
	// Each active brand has a finding for each type that concerns its kind, also where nothing was compared. So an
	// open alert without a finding is of a brand or a model that is no longer measured.
	all := make(map[string]*finding)
	add := func(model string, compared []visibility.Change) {
		for i := range e.Gaps.Active {
			b := &e.Gaps.Active[i]
			var change *visibility.Change
			if at := slices.IndexFunc(compared, func(c visibility.Change) bool { return c.Brand.ID == b.ID }); at >= 0 {
				change = &compared[at]
			}
			for kind := range alertKinds {
				if alertKinds[kind].brand == b.Kind {
					all[fingerprint(alertKinds[kind].name, b.ID.Text("brand"), model)] = &finding{kind, model, change}
				}
			}
		}
	}
	// Without a baseline no finding is usable, and open alerts stay open.
	var compared []visibility.Change // none without a baseline
	if e.Comparisons != nil {
		compared = e.Comparisons.All.Rows
	}
	add("", compared)
	for i, model := range e.Models {
		if e.Comparisons != nil {
			compared = e.Comparisons.ByModel[i].Rows
		}
		add(model, compared)
	}
	return all
}

// alerts resolves and opens alerts of the schedule.
func (a *application) alerts(ctx context.Context) error {
	open, err := a.readOpen(ctx)
	if err != nil {
		return err
	}
	// A disturbed run says nothing about visibility. It opens an alert about its failure and leaves the others open.
	if a.Disturbed {
		if _, isOpen := open[runFailed]; !isOpen {
			a.open(runFailed, a.failure(), nil)
		}
		return a.flush(ctx)
	}
	// runFailed has no finding, so a run that is not disturbed resolves that alert.
	found := a.findings()
	for print, of := range open {
		f := found[print]
		// The alert stays open if the run cannot tell, or still shows the change.
		if f != nil && (!f.isUsable() || f.shows()) {
			continue
		}
		a.batch.Queue(resolveAlert, a.Account, of.id, a.now)
		a.changes.Alerts = append(a.changes.Alerts, Changed{of.kind, "resolved"})
		delete(open, print)
	}
	for _, print := range a.opening(found, open) {
		f := found[print]
		a.open(print, a.alert(f), &f.change.Brand.ID)
	}
	return a.flush(ctx)
}

// opening returns the fingerprints of the alerts that open, in the order in which they are chosen.
func (a *application) opening(found map[string]*finding, open map[string]openAlert) (prints []string) {
	for print, f := range found {
		// An alert opens if the change is clear at 99 %, and stays open while the verdict at 95 % is the same. So
		// a change near the limit does not open and resolve alerts in turns.
		if _, isOpen := open[print]; !isOpen && f.isUsable() && f.opens(a.MinChange) {
			prints = append(prints, print)
		}
	}
	of := func(f *finding) string { // the alert over all models about the same
		return fingerprint(alertKinds[f.kind].name, f.change.Brand.ID.Text("brand"), "")
	}
	// The alert about all models includes the change on one model.
	prints = slices.DeleteFunc(prints, func(print string) bool {
		all := of(found[print])
		_, isOpen := open[all]
		return print != all && (isOpen || slices.Contains(prints, all))
	})
	slices.SortFunc(prints, func(x, y string) int {
		f, g := found[x], found[y]
		// isOne is 0 for all models and 1 for one.
		isOne := func(f *finding) int { return min(len(f.model), 1) }
		return cmp.Or(isOne(f)-isOne(g), cmp.Compare(g.size(), f.size()), f.change.Brand.ID.Compare(g.change.Brand.ID),
			cmp.Compare(f.model, g.model), cmp.Compare(alertKinds[f.kind].name, alertKinds[g.kind].name))
	})
	return prints[:min(len(prints), maxOpened)]
}

// open writes an alert and its event.
func (a *application) open(print string, alert Alert, brand *store.ID) {
	// print is stored as the alert's fingerprint, by which the next runs find it.
	alert.ID, alert.Status, alert.DetectedAt, alert.RunID, alert.Country = a.NewID(), "open", a.now, &a.Run, &a.Country
	alert.ScheduleID, alert.BrandID = &a.Schedule, brand
	a.batch.Queue(insertAlert, a.Account, alert.ID, alert.Type, alert.Severity, alert.Status, alert.Title, alert.Message, alert.Metric,
		alert.Direction, alert.CurrentValue, alert.BaselineValue, alert.ModelID, alert.Country, alert.RunID, alert.DetectedAt, alert.BrandID,
		alert.ScheduleID, print)
	a.cause(events.AlertOpened, alert.ID, a.Events.Alert(&alert))
	a.changes.Alerts = append(a.changes.Alerts, Changed{alert.Type, "opened"})
}

// alert describes the change of a finding.
func (a *application) alert(f *finding) Alert {
	kind, rate := &alertKinds[f.kind], f.rate()
	alert := Alert{
		Type: kind.name, Severity: kind.severity, Metric: &kind.metric, Direction: kind.verdict,
		CurrentValue: number(rate.Current.Value), BaselineValue: number(rate.Baseline.Value),
		Title: a.title(f), Message: a.message(f),
	}
	if f.size() >= large {
		alert.Severity = kind.largeSeverity
	}
	if f.model != "" {
		alert.ModelID = &f.model
	}
	return alert
}

// number returns a Decimal, which must not be nil, as a fraction such as 0.25.
func number(d *visibility.Decimal) *float64 { return new(float64(*d) / 10_000) }

// failure describes a disturbed run.
func (a *application) failure() Alert {
	share := visibility.Ratio(int64(a.Failed), int64(a.Total))
	// It has no baseline and no brand.
	alert := Alert{Type: runFailed, Severity: "high", Metric: new("failed_jobs"), Direction: "none", CurrentValue: number(&share),
		Title: a.Name + ": many jobs failed", Message: a.failureMessage(share)}
	if a.Status == "failed" {
		alert.Severity, alert.Title = "critical", a.Name+": the run failed"
	}
	return alert
}

// An openAlert is an open alert of the schedule.
type openAlert struct {
	id   store.ID
	kind string
}

// readOpen returns the open alerts of the schedule by fingerprint.
func (a *application) readOpen(ctx context.Context) (map[string]openAlert, error) {
	rows, err := a.tx.Query(ctx, selectOpenAlerts, a.Account, a.Schedule)
	if err != nil {
		return nil, err
	}
	open := make(map[string]openAlert)
	var print string
	var of openAlert
	_, err = pgx.ForEachRow(rows, []any{&print, &of.id, &of.kind}, func() error {
		open[print] = of
		return nil
	})
	return open, err
}

// flush sends the statements that are queued.
func (a *application) flush(ctx context.Context) error {
	if a.batch.Len() == 0 {
		return nil
	}
	// Statements that are queued from here on belong to the next flush.
	b := a.batch
	a.batch = pgx.Batch{}
	return a.tx.SendBatch(ctx, &b).Close()
}
