// Package status reads the state of the service for aiv status, and writes it for people. It owns no table.
package status

import (
	"aiv/cmd/aiv/internal/database"
	"aiv/runs/jobs"
	"aiv/store"
	"aiv/store/schema"
)

// A Status is the state of the service. What could not be read is null in JSON.
type Status struct {
	Ready      bool          `json:"ready"`
	Problem    *string       `json:"problem"` // why not
	Database   Database      `json:"database"`
	Migrations *Migrations   `json:"migrations"`
	Roles      []Role        `json:"roles"`
	Providers  []Provider    `json:"providers"`
	Queue      *Queue        `json:"queue"`
	Workers    *int          `json:"workers_seen"` // in the last 5 minutes
	Oldest     *WaitingJob   `json:"oldest_waiting"`
	Webhooks   *Webhooks     `json:"webhooks"`
	Brands     *Brands       `json:"brands"`
	Schedules  *Schedules    `json:"schedules"`
	Expiring   []ExpiringKey `json:"expiring_keys"`    // within 14 days
	Tables     []Table       `json:"tables,omitempty"` // of a database with Citus
}

// The parts of a [Status].
type (
	Database struct {
		// Reachable is true even if the database is then refused, such as for its encoding.
		Reachable bool    `json:"reachable"`
		Version   *string `json:"version"` // of PostgreSQL
		database.Location
		ReadOnly bool `json:"read_only"`
	}
	Migrations struct {
		Applied int `json:"applied"`
		Pending int `json:"pending"`
		Changed int `json:"changed"`
		Newer   int `json:"newer"` // and compatible with this binary
		Unknown int `json:"unknown"`
	}
	// A Role was granted the privileges of a service.
	Role struct {
		Name    string   `json:"name"`
		Service string   `json:"service"`
		Missing []string `json:"missing"`
	}
	Provider struct {
		Code  string   `json:"code"`
		Name  string   `json:"name"`
		Unmet []string `json:"unmet"`
		ProviderWork
	}
	Queue struct {
		OpenRuns         int64   `json:"open_runs"`
		QueuedJobs       int64   `json:"queued_jobs"`
		OldestCreatedAt  *string `json:"oldest_created_at"`
		OldestAgeSeconds *int64  `json:"oldest_age_seconds"`
	}
	// A WaitingJob is of the oldest run with jobs to hand out.
	WaitingJob struct {
		Provider     string `json:"provider"`
		RunCreatedAt string `json:"run_created_at"`
		Why          string `json:"why"`
	}
	Webhooks struct {
		Pending    int     `json:"pending"`     // deliveries, counted up to 10,000
		LagSeconds float64 `json:"lag_seconds"` // how long the oldest due one has been due
	}
	Brands struct {
		Active               int64   `json:"active"`
		AnswersRecounting    int64   `json:"answers_recounting"`
		OldestRecountSeconds float64 `json:"oldest_recount_seconds"` // since the oldest change whose recount has not ended
	}
	Schedules struct {
		Active               int64            `json:"active"`
		Paused               map[string]int64 `json:"paused"`      // by reason
		LagSeconds           float64          `json:"lag_seconds"` // how long the longest due one has been due
		EvaluationsWaiting   int64            `json:"evaluations_waiting"`
		EvaluationLagSeconds float64          `json:"evaluation_lag_seconds"`
	}
	ExpiringKey struct {
		ID        string `json:"id"`
		AccountID string `json:"account_id"`
		Name      string `json:"name"`
		KeyPrefix string `json:"key_prefix"`
		ExpiresAt string `json:"expires_at"`
	}
	// A Table is where a table of a database with Citus is.
	Table struct {
		Name      string           `json:"name"`
		Placement schema.Placement `json:"placement"`
		Wanted    schema.Placement `json:"wanted"` // by aiv migrate -distribute
		Bytes     int64            `json:"bytes"`  // on all servers
	}
)

// A ProviderWork is what limits a provider's jobs, and how many there are.
type ProviderWork struct {
	PerMinute      *int    `json:"per_minute"` // null: any number
	InFlight       *int    `json:"in_flight"`  // null: any number
	PausedAt       *string `json:"paused_at"`
	PauseNote      *string `json:"pause_note"`
	PauseReason    *string `json:"pause_reason"` // why a worker reported the provider unavailable
	PausedBy       *string `json:"paused_by"`
	ThrottledUntil *string `json:"throttled_until"`
	Waiting        int64   `json:"jobs_waiting"`
	Leased         int64   `json:"jobs_leased"`
}

// WorkOf returns the work of a provider.
func WorkOf(s jobs.ProviderState) ProviderWork {
	return ProviderWork{s.PerMinute, s.InFlight, store.FormatTimeOrNil(s.PausedAt), s.PauseNote, s.PauseReason, s.PausedBy,
		store.FormatTimeOrNil(s.ThrottledUntil), s.Waiting, s.Leased}
}

// Paused returns why no jobs are handed out now, or "".
func (w *ProviderWork) Paused() string {
	switch {
	case w.PauseReason != nil:
		return "paused (" + *w.PauseReason + "): " + *w.PauseNote
	case w.PausedAt != nil:
		return "paused: " + *w.PauseNote
	case w.ThrottledUntil != nil:
		return "throttled until " + *w.ThrottledUntil
	}
	return ""
}
