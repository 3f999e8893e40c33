package insights

import (
	"context"
	"slices"
	"time"

	"aiv/store"
)

// A RecommendationFilter selects recommendations of an account. Empty members select all.
type RecommendationFilter struct {
	Status   string
	Priority string
	Category string
	Type     string
	RunID    *store.ID
	From, To *time.Time // creation time, From inclusive, To exclusive
}

// An AlertFilter selects alerts of an account. Empty members select all.
type AlertFilter struct {
	Status   string
	Severity string // this severity or a worse one
	Type     string
	RunID    *store.ID
	From, To *time.Time // detection time, From inclusive, To exclusive
}

// Recommendations returns a page of an account's recommendations, newest first, and one more if there is one. With
// several filters it uses the index of the first of run, type, category, status, priority.
func Recommendations(ctx context.Context, db store.Querier, account store.ID, f RecommendationFilter, page store.Page) ([]Recommendation, error) {
	s := store.KeysetQuery{Select: selectRecommendations, Order: []string{"created_at", "id"}, From: f.From, To: f.To, Page: page}
	s.Where("account_id = ?", account)
	s.Filter("run_id", ofRun(f.RunID)...)
	s.Filter("type", f.Type)
	s.Filter("category", f.Category)
	s.Filter("status", f.Status)
	s.Filter("priority", f.Priority)
	return store.ReadPage[Recommendation](ctx, db, &s)
}

// Alerts returns a page of an account's alerts, newest first, and one more if there is one. With several filters it
// uses the index of the first of run, type, status, severity.
func Alerts(ctx context.Context, db store.Querier, account store.ID, f AlertFilter, page store.Page) ([]Alert, error) {
	s := store.KeysetQuery{Select: selectAlerts, Order: []string{"detected_at", "id"}, From: f.From, To: f.To, Page: page}
	s.Where("account_id = ?", account)
	s.Filter("run_id", ofRun(f.RunID)...)
	s.Filter("type", f.Type)
	s.Filter("status", f.Status)
	s.Filter("severity", atLeast(f.Severity)...)
	return store.ReadPage[Alert](ctx, db, &s)
}

// ofRun returns the values of a filter by run; nil: no filter.
func ofRun(id *store.ID) []string {
	if id == nil {
		return nil
	}
	return []string{id.UUID()}
}

// atLeast returns the severity and all worse ones. The least severe one includes all alerts, so it needs no filter. An
// empty or unknown severity is returned alone.
func atLeast(severity string) []string {
	switch i := slices.Index(Severities, severity); i {
	case -1:
		return []string{severity}
	case len(Severities) - 1:
		return nil
	default:
		return Severities[:i+1]
	}
}
