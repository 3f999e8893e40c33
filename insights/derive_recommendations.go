package insights

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"aiv/insights/brands"
	"aiv/insights/events"
	"aiv/insights/visibility"
	"aiv/store"
)

const (
	mentionGap  = "mention_gap"
	citationGap = "citation_gap"

	minGapAnswers      = 3   // with fewer answers, a question or a host is no gap
	maxOpenSuggestions = 50  // derived ones of an account
	maxTitleQuestion   = 100 // characters
	maxAlso            = 3   // competitors that a summary names besides the first
)

// A gap is a recommendation that a run shows: competitors occur and no own brand does. size is the number of answers.
type gap struct {
	Recommendation
	subject string // the question or the host
	size    int64
}

// fingerprint identifies what a recommendation of a schedule is about.
func (g *gap) fingerprint() string { return g.Type + " " + g.subject }

// gaps returns the gaps of the run, in the order in which they are suggested.
func (e *Evaluation) gaps() (gaps []gap) {
	hasKind := func(kind string) bool {
		return slices.ContainsFunc(e.Gaps.Active, func(b brands.Brand) bool { return b.Kind == kind })
	}
	// A gap needs both: without own brands each question would be one.
	if !hasKind(brands.Own) || !hasKind(brands.Competitor) {
		return nil
	}
	for i := range e.Gaps.Questions {
		if g, ok := e.mentionGap(&e.Gaps.Questions[i]); ok {
			gaps = append(gaps, g)
		}
	}
	for i := range e.Gaps.Hosts {
		if h := &e.Gaps.Hosts[i]; h.Answers >= minGapAnswers {
			gaps = append(gaps, e.citationGap(h))
		}
	}
	// Priorities are ordered from high to low. Of one priority, mention gaps come before citation gaps.
	slices.SortFunc(gaps, func(a, b gap) int {
		return cmp.Or(slices.Index(Priorities, a.Priority)-slices.Index(Priorities, b.Priority), -cmp.Compare(a.Type, b.Type),
			cmp.Compare(b.size, a.size), cmp.Compare(a.subject, b.subject))
	})
	return gaps
}

// mentionGap returns the gap of a question, if it is one.
func (e *Evaluation) mentionGap(q *visibility.QuestionGap) (gap, bool) {
	if q.Answers < minGapAnswers || q.MentionsOwn {
		return gap{}, false
	}
	// Competitors that at least half of the answers mention.
	often := slices.DeleteFunc(slices.Clone(q.Competitors), func(m visibility.Mentioned) bool { return 2*m.Answers < q.Answers })
	if len(often) == 0 {
		return gap{}, false
	}
	slices.SortFunc(often, func(a, b visibility.Mentioned) int {
		return cmp.Or(cmp.Compare(b.Answers, a.Answers), cmp.Compare(a.Brand.Name, b.Brand.Name), a.Brand.ID.Compare(b.Brand.ID))
	})
	// The competitor that is mentioned most often decides the priority.
	first := &often[0]
	g := gap{subject: q.Question, size: first.Answers, Recommendation: Recommendation{
		Type: mentionGap, Category: "on_page", Priority: "low", ModelIDs: first.Models, QuestionIDs: []string{q.Question},
		Title: fmt.Sprintf("%s: no answer mentions you for \"%s\"", e.Name, cut(e.Texts[q.Question], maxTitleQuestion)),
	}}
	switch {
	case 5*first.Answers >= 4*q.Answers: // 0.8
		g.Priority = "high"
	case 20*first.Answers >= 13*q.Answers: // 0.65
		g.Priority = "medium"
	}
	g.Summary = fmt.Sprintf("%s is mentioned in %d of %d answers, and none of your brands in any.", first.Brand.Name, first.Answers, q.Answers)
	var also []string
	for _, m := range often[1:min(len(often), 1+maxAlso)] {
		also = append(also, fmt.Sprintf("%s (%d)", m.Brand.Name, m.Answers))
	}
	if len(also) > 0 {
		g.Summary += " Also mentioned: " + strings.Join(also, ", ") + "."
	}
	return g, true
}

// citationGap returns the gap of a host. Its priority depends on the number of answers.
func (e *Evaluation) citationGap(h *visibility.HostGap) gap {
	g := gap{subject: h.Host, size: h.Answers, Recommendation: Recommendation{
		Type: citationGap, Category: "off_page", Priority: "low", ModelIDs: h.Models, QuestionIDs: h.Questions,
		Title: fmt.Sprintf("%s: %s is cited where competitors are mentioned and you are not", e.Name, h.Host),
		Summary: fmt.Sprintf("%s is cited in %d answers that mention a competitor and none of your brands (%s, %s).", h.Host, h.Answers,
			plural(len(h.Questions), "question"), plural(len(h.Models), "model")),
	}}
	switch {
	case h.Answers >= 10:
		g.Priority = "high"
	case h.Answers >= 5:
		g.Priority = "medium"
	}
	return g
}

// plural returns a number with a noun, as in "2 models".
func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// cut returns the first characters of a text, with … if some are left out.
func cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// A derivedRow is a recommendation of the schedule.
type derivedRow struct {
	Recommendation
	Fingerprint string
	Imported    bool // an import has set the status
}

// isOpen reports whether a recommendation is neither done nor dismissed.
func (r *derivedRow) isOpen() bool {
	return r.Status == "suggested" || r.Status == "accepted" || r.Status == "in_progress"
}

// recommendations updates, ends and suggests recommendations of the schedule.
func (a *application) recommendations(ctx context.Context) error {
	gaps := a.gaps()
	found := make(map[string]bool)
	for i := range gaps {
		found[gaps[i].fingerprint()] = true
	}
	known, open, err := a.readRecommendations(ctx, slices.Collect(maps.Keys(found)))
	if err != nil {
		return err
	}
	for print, row := range known {
		// A recommendation is done when the run shows no gap any more.
		if !row.isOpen() || found[print] || a.isUndecided(row) {
			continue
		}
		a.batch.Queue(endRecommendation, a.Account, row.ID, a.now)
		a.changes.Recommendations = append(a.changes.Recommendations, Changed{row.Type, "done"})
		open--
	}
	for i := range gaps {
		g := &gaps[i]
		row := known[g.fingerprint()]
		switch {
		case row != nil && row.isOpen():
			a.batch.Queue(updateRecommendation, a.Account, row.ID, row.Status, row.Imported, g.Title, g.Summary, g.Priority, g.ModelIDs, g.QuestionIDs, a.Run, a.now)
		// A final status that an import has set stays. A recommendation that an evaluation has set to done may be
		// suggested again.
		case row != nil && row.Imported || open >= maxOpenSuggestions:
		default:
			a.suggest(g, row)
			open++
		}
	}
	return a.flush(ctx)
}

// isUndecided reports whether the run has too few answers to the question of a recommendation. The fingerprint has the
// question: an import may have changed the type.
func (a *application) isUndecided(row *derivedRow) bool {
	return slices.ContainsFunc(a.Gaps.Questions, func(q visibility.QuestionGap) bool {
		return mentionGap+" "+q.Question == row.Fingerprint && q.Answers < minGapAnswers
	})
}

// suggest writes a recommendation that is new, or was done and is found again, and its event.
func (a *application) suggest(g *gap, row *derivedRow) {
	r := g.Recommendation
	r.Status, r.RunID, r.ScheduleID, r.CreatedAt, r.UpdatedAt = "suggested", &a.Run, &a.Schedule, a.now, a.now
	if row != nil {
		// The row is opened again, with its id and its first creation.
		r.ID, r.Type, r.Category, r.CreatedAt = row.ID, row.Type, row.Category, row.CreatedAt
		if r.UpdatedAt.Before(r.CreatedAt) { // as in updateRecommendation
			r.UpdatedAt = r.CreatedAt
		}
		a.batch.Queue(updateRecommendation, a.Account, r.ID, r.Status, false, r.Title, r.Summary, r.Priority, r.ModelIDs, r.QuestionIDs, r.RunID, a.now)
	} else {
		r.ID = a.NewID()
		a.batch.Queue(insertRecommendation, a.Account, r.ID, r.Type, r.Category, r.Title, r.Summary, r.Priority, r.Status, r.ModelIDs, r.QuestionIDs,
			r.RunID, r.CreatedAt, r.ScheduleID, g.fingerprint())
	}
	a.cause(events.RecommendationSuggested, r.ID, a.Events.Recommendation(&r))
	a.changes.Recommendations = append(a.changes.Recommendations, Changed{r.Type, "suggested"})
}

// readRecommendations returns the recommendations of the schedule that are open or have one of the fingerprints, and how
// many derived ones of the account are open.
func (a *application) readRecommendations(ctx context.Context, prints []string) (known map[string]*derivedRow, open int, err error) {
	all, err := store.Collect(ctx, a.tx, pgx.RowToAddrOfStructByPos[derivedRow], selectDerived, a.Account, a.Schedule, prints)
	if err != nil {
		return nil, 0, err
	}
	known = make(map[string]*derivedRow, len(all))
	for _, row := range all {
		known[row.Fingerprint] = row
	}
	err = a.tx.QueryRow(ctx, countOpenDerived, a.Account).Scan(&open)
	return known, open, err
}
