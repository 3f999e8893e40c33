package insights

import (
	"fmt"
	"strings"

	"aiv/insights/visibility"
)

// alertTitles are the titles of derived alerts after the schedule's name.
var alertTitles = map[string]string{
	visibilityDrop:   "%s is mentioned less often",
	visibilityGain:   "%s is mentioned more often",
	citationLost:     "%s is cited less often",
	citationGained:   "%s is cited more often",
	competitorGained: "Competitor %s is mentioned more often",
}

// title returns the title of an alert: the schedule, the brand and the change, and the model if it concerns only one.
func (a *application) title(f *finding) string {
	title := a.Name + ": " + fmt.Sprintf(alertTitles[alertKinds[f.kind].name], f.change.Brand.Name)
	if f.model != "" {
		title += " on " + f.model
	}
	return title
}

// message says in a sentence what has changed, with counts, and how certain it is.
func (a *application) message(f *finding) string {
	kind, rate := &alertKinds[f.kind], f.rate()
	var b strings.Builder
	if f.model != "" {
		b.WriteString("On " + f.model + ", ")
	}
	if kind.name == competitorGained {
		b.WriteString("Competitor ")
	}
	verb, runs := "mentioned", fmt.Sprintf("the %d runs before", a.Baseline)
	if kind.metric == "citation_rate" {
		verb = "cited"
	}
	if a.Baseline == 1 {
		runs = "the run before"
	}
	// The verdict is a word of the sentence: up or down.
	fmt.Fprintf(&b, "%s is %s in %s %% of the answers (%d of %d), %s from %s %% (%d of %d) in %s.", f.change.Brand.Name, verb,
		percent(*rate.Current.Value), rate.Current.Count, rate.Current.Of, kind.verdict,
		percent(*rate.Baseline.Value), rate.Baseline.Count, rate.Baseline.Of, runs)
	fmt.Fprintf(&b, " The change is %s points (95 %% interval %s to %s).", signed(rate.Difference.Value), signed(rate.Difference.Low), signed(rate.Difference.High))
	var moved []string
	for _, q := range rate.Moved {
		// Only questions that moved in the direction of the alert explain it.
		if (q.Difference > 0) == (kind.verdict == visibility.Up) && len(moved) < 3 {
			moved = append(moved, q.Question)
		}
	}
	if len(moved) > 0 {
		b.WriteString(" Moved most: " + strings.Join(moved, ", ") + ".")
	}
	return b.String()
}

// failureMessage says how many jobs failed. share is their share of all jobs.
func (a *application) failureMessage(share visibility.Decimal) string {
	return fmt.Sprintf("%d of %d jobs failed (%s %%). Visibility was not compared with earlier runs.", a.Failed, a.Total, percent(share))
}

// percent returns a number times 100. A Decimal has four decimals, so the result has up to two.
func percent(d visibility.Decimal) string { return (d * 100).String() }

// signed is percent with a sign.
func signed(d visibility.Decimal) string {
	if d > 0 {
		return "+" + percent(d)
	}
	return percent(d)
}
