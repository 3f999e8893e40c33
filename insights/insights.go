// Package insights has the results of analyzing measurements: recommendations and alerts. Operators import the results
// of other programs. The results of scheduled runs are derived from what has changed since earlier runs, and from gaps.
//
// It owns the tables recommendations and alerts. The gateway reads them for the routes /v1/recommendations and
// /v1/alerts; command aiv imports them; package schedules calls a [Deriver] when a run is final.
package insights

import (
	"time"

	"aiv/store"
)

// A Recommendation proposes a change that may improve the visibility of an account.
type Recommendation struct {
	ID          store.ID
	Type        string // defined by the analysis; matches typePattern
	Category    string // one of Categories
	Title       string
	Summary     string
	Priority    string    // one of Priorities
	Status      string    // one of RecommendationStatuses
	ModelIDs    []string  // the models concerned; empty: none in particular
	QuestionIDs []string  // the questions concerned; empty: none in particular
	RunID       *store.ID // the run that it is based on
	CreatedAt   time.Time
	UpdatedAt   time.Time
	ScheduleID  *store.ID // whose run it was derived from; nil: it was imported, or the schedule is deleted
}

// An Alert reports a change of a metric, or a run that failed.
type Alert struct {
	ID            store.ID
	Type          string // one of AlertTypes
	Severity      string // one of Severities
	Status        string // one of AlertStatuses
	Title         string
	Message       string
	Metric        *string // defined by the analysis; matches typePattern
	Direction     string  // one of Directions
	CurrentValue  *float64
	BaselineValue *float64
	ModelID       *string
	QuestionID    *string
	Country       *string
	RunID         *store.ID // the run that it is based on
	DetectedAt    time.Time
	ResolvedAt    *time.Time // set if and only if the status is resolved
	BrandID       *store.ID  // of a derived alert about a brand
	ScheduleID    *store.ID  // whose run it was derived from; nil: it was imported, or the schedule is deleted
}

// The allowed values. Constraints of the tables reject others, except other types of alerts, which aiv verify reports.
var (
	Categories             = []string{"on_page", "off_page", "technical", "social"}
	Priorities             = []string{"high", "medium", "low"}
	RecommendationStatuses = []string{"suggested", "accepted", "in_progress", "done", "dismissed"}

	AlertTypes = []string{"visibility_drop", "visibility_gain", "citation_lost", "citation_gained", "competitor_gained",
		"sentiment_shift", "run_failed"}
	Severities    = []string{"critical", "high", "medium", "low"} // most severe first
	AlertStatuses = []string{"open", "acknowledged", "resolved"}
	Directions    = []string{"up", "down", "none"}
)
