package status

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"aiv/cmd/aiv/internal/cli"
	"aiv/cmd/aiv/internal/service"
	"aiv/store/schema"
)

// Write writes the status for people. Why it is not ready is an error, on stderr. What could not be read is left out.
func (s *Status) Write(w io.Writer) {
	// Capitals mark what an operator has to act on, here and below.
	ready := "NO"
	if s.Ready {
		ready = "yes"
	}
	cli.Row(w, "ready", ready)
	cli.Row(w, "database", s.Database.text())
	if s.Migrations != nil {
		cli.Row(w, "migrations", s.Migrations.text())
	}
	for _, r := range s.Roles {
		cli.Row(w, "role", r.text())
	}
	if s.Tables != nil {
		cli.Row(w, "tables", tablesText(s.Tables))
	}
	if s.Queue != nil {
		cli.Row(w, "queue", s.Queue.text())
	}
	if s.Webhooks != nil {
		cli.Row(w, "webhooks", s.Webhooks.text())
	}
	if s.Brands != nil {
		cli.Row(w, "brands", s.Brands.text())
	}
	if s.Schedules != nil {
		cli.Row(w, "schedules", s.Schedules.text())
	}
	if len(s.Expiring) > 0 {
		cli.Row(w, "keys", cli.Count(len(s.Expiring), "expires", "expire")+" within 14 days")
	}
	if s.Providers != nil {
		s.writeWork(w)
		s.writeProviders(w)
	}
	if len(s.Expiring) > 0 {
		fmt.Fprintln(w, "\nThese keys expire within 14 days (issue successors with aiv keys rotate ID -expires TIME):")
		for _, k := range s.Expiring {
			cli.Row(w, "  "+k.ID, k.AccountID, k.Name, k.KeyPrefix+"…", k.ExpiresAt)
		}
	}
}

// text leaves out where the database is if its URL is not valid.
func (d *Database) text() string {
	state := "unreachable"
	switch {
	case d.Version != nil && d.ReadOnly:
		state = "PostgreSQL " + *d.Version + ", READ-ONLY"
	case d.Version != nil:
		state = "PostgreSQL " + *d.Version
	// The database was reached, and refused before its version was read.
	case d.Reachable:
		state = "not usable"
	}
	if d.Name == "" {
		return state
	}
	return state + "; " + d.Location.String()
}

// text leaves out counts of 0, except of the applied migrations.
func (m *Migrations) text() string {
	text := strconv.Itoa(m.Applied) + " applied"
	for _, more := range []struct {
		n    int
		word string
	}{{m.Pending, "pending"}, {m.Changed, "changed"}, {m.Newer, "newer"}, {m.Unknown, "unknown"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.word)
		}
	}
	return text
}

func (r *Role) text() string {
	text := r.Name + " for aiv " + r.Service
	if len(r.Missing) > 0 {
		text += ", LACKS " + cli.Count(len(r.Missing), "PRIVILEGE", "PRIVILEGES")
	}
	return text
}

// tablesText counts the tables of each placement, and those that are not where they should be.
func tablesText(tables []Table) string {
	counts := make(map[schema.Placement]int)
	misplaced := 0
	for _, t := range tables {
		counts[t.Placement]++
		if t.Placement != t.Wanted {
			misplaced++
		}
	}
	text := fmt.Sprintf("%d by account, %d on every server, %d on the coordinator", counts[schema.ByAccount], counts[schema.Reference],
		counts[schema.Coordinator]+counts[schema.Local])
	if misplaced > 0 {
		text += fmt.Sprintf("; %d NOT DISTRIBUTED (aiv migrate -distribute)", misplaced)
	}
	return text
}

func (q *Queue) text() string {
	text := cli.Count(q.OpenRuns, "open run", "open runs") + ", " + cli.Count(q.QueuedJobs, "queued job", "queued jobs")
	if q.OldestAgeSeconds != nil {
		text += ", the oldest for " + cli.FormatDuration(time.Duration(*q.OldestAgeSeconds)*time.Second)
	}
	return text
}

// text says that the count is a lower bound if it has reached service.MaxCounted.
func (w *Webhooks) text() string {
	text := cli.Count(w.Pending, "pending delivery", "pending deliveries")
	if w.Pending >= service.MaxCounted {
		text = "at least " + text
	}
	if w.LagSeconds > 0 {
		text += ", due for " + cli.FormatDuration(time.Duration(w.LagSeconds*float64(time.Second)).Round(time.Second))
	}
	return text
}

func (b *Brands) text() string {
	text := strconv.FormatInt(b.Active, 10) + " active"
	if b.AnswersRecounting > 0 {
		text += ", " + cli.Count(b.AnswersRecounting, "answer", "answers") + " to recount"
	}
	if b.OldestRecountSeconds > 0 {
		text += ", changed " + cli.FormatDuration(time.Duration(b.OldestRecountSeconds*float64(time.Second)).Round(time.Second)) + " ago"
	}
	return text
}

func (s *Schedules) text() string {
	text := strconv.FormatInt(s.Active, 10) + " active"
	for _, reason := range slices.Sorted(maps.Keys(s.Paused)) {
		text += fmt.Sprintf(", %d paused (%s)", s.Paused[reason], reason)
	}
	if s.LagSeconds >= 1 {
		text += ", due for " + cli.FormatDuration(time.Duration(s.LagSeconds*float64(time.Second)).Round(time.Second))
	}
	if s.EvaluationsWaiting > 0 {
		text += ", " + cli.Count(s.EvaluationsWaiting, "run", "runs") + " to evaluate, for " +
			cli.FormatDuration(time.Duration(s.EvaluationLagSeconds*float64(time.Second)).Round(time.Second))
	}
	return text
}

// writeWork writes the workers, and the providers that have jobs or are paused. The caller has checked that s.Providers
// is not nil; then s.Workers is not nil either, because it is read before.
func (s *Status) writeWork(w io.Writer) {
	cli.Row(w, "workers", strconv.Itoa(*s.Workers)+" seen in the last 5 minutes")
	if s.Oldest != nil {
		cli.Row(w, "oldest job", fmt.Sprintf("of %s, in a run of %s: %s", s.Oldest.Provider, s.Oldest.RunCreatedAt, s.Oldest.Why))
	}
	for _, p := range s.Providers {
		if p.Waiting+p.Leased > 0 || p.Paused() != "" {
			cli.Row(w, "  "+p.Code, fmt.Sprintf("%d waiting, %d leased; %s", p.Waiting, p.Leased, cmp.Or(p.Paused(), "not paused")))
		}
	}
}

// writeProviders lists the providers with unmet dependencies.
func (s *Status) writeProviders(w io.Writer) {
	var lacking []Provider
	for _, p := range s.Providers {
		if len(p.Unmet) > 0 {
			lacking = append(lacking, p)
		}
	}
	if len(s.Providers) == 0 {
		cli.Row(w, "providers", "none; import a catalog with aiv catalog import")
		return
	}
	if len(lacking) == 0 {
		cli.Row(w, "providers", fmt.Sprintf("%d, all dependencies met", len(s.Providers)))
		return
	}
	cli.Row(w, "providers", fmt.Sprintf("%d, of which %d HAVE UNMET DEPENDENCIES", len(s.Providers), len(lacking)))
	fmt.Fprintln(w, "\nRuns with models of these providers are rejected, and their jobs are not handed out, until these dependencies are recorded\nas met (aiv providers met):")
	for _, p := range lacking {
		cli.Row(w, "  "+p.Code, strings.Join(p.Unmet, ", "))
	}
}
