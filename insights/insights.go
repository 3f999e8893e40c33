// Package insights reads and imports what was learned from measurements: recommendations and alerts.
//
// It owns the tables recommendations and alerts. The gateway reads it for the routes /v1/recommendations and /v1/alerts;
// command aiv imports into it what the analysis, which is no part of this program, has found.
package insights

import (
	"time"

	"aiv/store"
)

// A Recommendation says what an account could do to be seen better.
type Recommendation struct {
	ID          store.ID
	Type        string // a word of the analysis's own
	Category    string // one of Categories
	Title       string
	Summary     string
	Priority    string    // one of Priorities
	Status      string    // one of RecommendationStatuses
	ModelIDs    []string  // those that it is about; none: no particular ones
	QuestionIDs []string  // as ModelIDs
	RunID       *store.ID // the run that it was drawn from
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// An Alert says that something has changed that an account should know of.
type Alert struct {
	ID            store.ID
	Type          string // one of AlertTypes
	Severity      string // one of Severities
	Status        string // one of AlertStatuses
	Title         string
	Message       string
	Metric        *string // what was measured, in a word of the analysis's own
	Direction     string  // one of Directions
	CurrentValue  *float64
	BaselineValue *float64
	ModelID       *string
	QuestionID    *string
	Country       *string
	RunID         *store.ID // the run that showed it
	DetectedAt    time.Time
	ResolvedAt    *time.Time // set exactly when the status is resolved
}

// The words that the members may hold. The tables refuse all others.
var (
	Categories             = []string{"on_page", "off_page", "technical", "social"}
	Priorities             = []string{"high", "medium", "low"}
	RecommendationStatuses = []string{"suggested", "accepted", "in_progress", "done", "dismissed"}

	AlertTypes = []string{"visibility_drop", "visibility_gain", "citation_lost", "citation_gained", "competitor_gained",
		"sentiment_shift", "run_failed"}
	Severities    = []string{"critical", "high", "medium", "low"} // the worst first
	AlertStatuses = []string{"open", "acknowledged", "resolved"}
	Directions    = []string{"up", "down", "none"}
)
